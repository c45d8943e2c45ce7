"""The table of synonyms: with htmx and without, what is said, and how it is undone."""

import json
from html import unescape

import pytest

from agents.models import Agent, AuditEntry
from tests.memory.views.operators import htmx, make_operator

PAGE = "/agents/ada/synonyms/"


@pytest.fixture
def web(client, db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.LANGUAGE_CODE = "en"
    client.force_login(make_operator())
    client.cookies["django_language"] = "en"
    return client


def kept(agent):
    return Agent.objects.named(agent.name).memory_config.synonyms


def give(agent, *groups):
    agent.memory_config.synonyms = [list(group) for group in groups]
    agent.memory_config.save()


def toast_of(answer):
    return json.loads(answer.headers["HX-Trigger"])["toast"]


def test_an_empty_table_says_what_it_is_for(ada, web):
    page = web.get(PAGE).content.decode()

    assert "No synonyms yet" in page
    assert 'aria-current="page">Synonyms' in page


@pytest.mark.parametrize("is_fragment", [True, False])
def test_a_row_is_added(ada, web, is_fragment):
    data = {"action": "add", "words": "k8s，Kubernetes"}

    answer = htmx(web, PAGE, data) if is_fragment else web.post(PAGE, data, follow=True)

    assert answer.status_code == 200
    assert kept(ada) == [["k8s", "Kubernetes"]]
    assert 'value="k8s, Kubernetes"' in answer.content.decode()
    assert ("<html" in answer.content.decode()) != is_fragment
    assert AuditEntry.objects.get().detail == "synonyms: + k8s, Kubernetes"


@pytest.mark.parametrize("is_fragment", [True, False])
def test_a_row_that_can_be_none_is_kept_as_typed_and_said(ada, web, is_fragment):
    data = {"action": "add", "words": "k8s <b>"}

    answer = htmx(web, PAGE, data) if is_fragment else web.post(PAGE, data)

    assert answer.status_code == 422
    page = answer.content.decode()
    assert 'value="k8s &lt;b&gt;"' in page
    assert "Give at least two words" in page
    assert kept(ada) == []


def test_a_row_saves_itself_and_names_what_is_kept_now(ada, web):
    give(ada, ["k8s", "Kubernetes"], ["ci", "jenkins"])

    data = {"action": "save", "row": "2", "before": "ci, jenkins", "words": "ci, 构建"}
    answer = htmx(web, PAGE, data)

    assert kept(ada) == [["k8s", "Kubernetes"], ["ci", "构建"]]
    page = answer.content.decode()
    assert "Saved" in page
    for name in ("before-2", "gone-2"):
        assert f'id="{name}" name="before" value="ci, 构建" hx-swap-oob="true"' in page
    assert "<form" not in page


def test_without_scripts_a_saved_row_leads_back_to_the_table(ada, web):
    give(ada, ["ci", "jenkins"])

    data = {"action": "save", "row": "1", "before": "ci, jenkins", "words": "ci, 构建"}
    answer = web.post(PAGE, data, follow=True)

    assert kept(ada) == [["ci", "构建"]]
    assert "Saved: ci, 构建" in answer.content.decode()


@pytest.mark.parametrize("is_fragment", [True, False])
def test_a_bad_change_is_said_beside_its_row(ada, web, is_fragment):
    give(ada, ["ci", "jenkins"], ["a1", "b1"])
    data = {"action": "save", "row": "1", "before": "ci, jenkins", "words": "ci"}

    answer = htmx(web, PAGE, data) if is_fragment else web.post(PAGE, data)

    assert answer.status_code == 422
    assert "Give at least two words" in answer.content.decode()
    assert kept(ada) == [["ci", "jenkins"], ["a1", "b1"]]
    if not is_fragment:
        assert 'value="ci" ' in answer.content.decode()


def test_a_row_that_somebody_else_changed_is_left_alone(ada, web):
    give(ada, ["ci", "github"])

    data = {"action": "save", "row": "1", "before": "ci, jenkins", "words": "ci, travis"}
    answer = htmx(web, PAGE, data)

    assert answer.status_code == 422
    assert "Somebody else changed this row" in answer.content.decode()
    assert kept(ada) == [["ci", "github"]]


@pytest.mark.parametrize("is_fragment", [True, False])
def test_a_row_is_deleted_and_put_back_where_it_was(ada, web, is_fragment):
    rows = [["a1", "b1"], ["k8s", "容器, 平台".replace(",", "")], ["c1", "d1"]]
    give(ada, *rows)
    data = {"action": "delete", "before": "k8s, 容器 平台"}

    if is_fragment:
        answer = htmx(web, PAGE, data)
        undo = toast_of(answer)["undo"]
    else:
        answer = web.post(PAGE, data, follow=True)
        page = answer.content.decode()
        undo = unescape(page.split('<form method="post" action="')[1].split('"')[0])
        while "/restore/" not in undo:
            page = page.split('<form method="post" action="', 1)[1]
            undo = unescape(page.split('<form method="post" action="')[1].split('"')[0])
    assert kept(ada) == [rows[0], rows[2]]

    htmx(web, undo) if is_fragment else web.post(undo)
    assert kept(ada) == rows


def test_a_row_that_is_deleted_twice_says_so(ada, web):
    answer = htmx(web, PAGE, {"action": "delete", "before": "a1, b1"})

    assert answer.status_code == 200
    assert toast_of(answer) == {
        "text": "Somebody else changed this row; reload the page.", "undo": "",
    }  # fmt: skip


@pytest.mark.parametrize("query", ["", "?place=x&words=a,b", "?place=-1&words=a,b", "?place=9999"])
def test_a_made_up_undo_does_no_harm(ada, web, query):
    give(ada, ["a1", "b1"])

    assert web.post(f"{PAGE}restore/{query}").status_code == 302
    assert ["a1", "b1"] in kept(ada)


def test_what_no_button_sends_is_not_found(ada, web):
    assert web.post(PAGE, {"action": "burn"}).status_code == 404
    assert web.post(PAGE).status_code == 404
