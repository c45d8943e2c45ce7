"""Operators in a browser: accounts, another's memories for a reason, erasing, the audit."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.site import manage
from tests.pages.steps import faults_in_both_themes, settle

REASON = "Bruno asked why Atlas finds no release"
_REMEMBER = """
from django.utils import timezone
from memory.drafts import parse_draft
from memory.services import memories
agent = Agent.objects.named("atlas")
for day in ("Fridays", "Mondays"):
    draft = parse_draft({{"type": "project", "content": f"Bruno releases on {{day}}"}})
    memories.save(agent, "{user_id}", draft, now=timezone.now())
"""


def try_query(page, user_id, query):
    page.select_option("select[name=agent]", "atlas")
    page.fill("input[name=user_id]", user_id)
    page.fill("textarea[name=query]", query)
    page.click("main form button.btn-primary")
    settle(page)


def try_on_tom(page, query):
    """Try a query on tom; as soon as a test has changed his memories, that takes a reason."""
    try_query(page, "tom", query)
    if page.locator("textarea[name=reason]").is_visible():
        page.fill("textarea[name=reason]", REASON)
        page.click("main form button.btn-primary")
        settle(page)


@on_both_engines
def test_an_account_is_made_linked_tried_and_erased(browse, site, request):
    name, user_id = f"bruno{len(site.passwords)}", f"b{len(site.passwords)}"
    manage(site, "shell", "-c", _REMEMBER.format(user_id=user_id))
    olga = browse("olga")

    olga.click("#nav a:has-text('Users')")
    olga.click("text=New account")
    olga.fill("input[name=username]", name)
    olga.click("main form button.btn-primary")
    site.passwords[name] = olga.locator("pre.h-copy").inner_text()
    assert site.passwords[name] not in olga.url
    olga.fill("input[name=user_id]", user_id)
    olga.click("text=Show what that gives access to")
    expect(olga.locator("main")).to_contain_text(f"{name} could then see, change and erase 2")
    olga.click("main form button.btn-primary")
    expect(olga.locator("main")).to_contain_text("Atlas: 2 memories")
    account = olga.url

    bruno = browse(name)
    expect(bruno.locator("#toasts")).to_contain_text("olga gave you this password")
    expect(bruno.locator("[data-row]")).to_have_count(2)

    olga.click("#nav a:has-text('Playground')")
    try_query(olga, user_id, "when does Bruno release?")
    olga.fill("textarea[name=reason]", REASON)
    olga.click("text=Record it and try")
    expect(olga.locator("section[aria-labelledby=modes] tbody tr")).to_have_count(3)
    expect(olga.locator("section[aria-labelledby=modes] thead th")).to_have_count(5)
    assert "Bruno" not in olga.url
    slider = olga.locator("input[name=threshold]")
    with olga.expect_response("**/playground/"):
        slider.fill("1")
    expect(olga.locator("main")).to_contain_text("2 of 2 hits")

    bruno.goto(f"{site.url}/me/memory/")
    read = bruno.locator("section[aria-labelledby=reads] .job", has_text=REASON)
    expect(read).to_contain_text("recall tried")
    expect(bruno.locator("section[aria-labelledby=deeds]")).to_contain_text("identity linked")

    olga.goto(f"{account}erase/")
    olga.fill("#confirm", name.upper())
    olga.click("main .btn-danger")
    expect(olga.locator("#refused")).to_be_visible()
    olga.fill("#confirm", name)
    olga.check("input[name=deletes_account]")
    olga.click("main .btn-danger")
    expect(olga.locator("#receipts")).to_contain_text("Erased and verified", timeout=60_000)
    expect(olga.locator("#receipts")).to_contain_text("The account is deleted, too.")
    assert bruno.goto(f"{site.url}/memories/").url.startswith(f"{site.url}/accounts/login/")

    olga.click("#nav a:has-text('Audit')")
    olga.fill("input[name=about]", name)
    olga.select_option("select[name=action]", "user_erased")
    settle(olga)
    row = olga.locator("#audit tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("user erased")
    assert "action=user_erased" in olga.url
    row.locator("a").click()
    expect(olga.locator("#receipts")).to_contain_text("Erased and verified")
    olga.go_back()
    olga.goto(f"{site.url}/audit/?about={name}")
    with olga.expect_download() as loading:
        olga.click("text=JSONL")
    lines = loading.value.path().read_text().splitlines()
    actions = [json.loads(line)["action"] for line in lines]
    assert actions[0] == "user_erased"
    assert {"account_created", "identity_linked", "content_tried"} <= set(actions)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_no_page_keeps_anybody_out_or_is_wider_than_a_phone(browse, site, locale):
    page = browse("olga", locale=locale, width=360, height=700, reduced_motion="reduce")
    found = {}

    def look(state):
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, state
        found[state] = faults_in_both_themes(page)

    page.goto(f"{site.url}/users/?role=user")
    look("users")
    tom = page.locator("tbody th a", has_text=re.compile("^tom$")).get_attribute("href")
    own = f"{tom}link/?user_id={'w' * 200}"
    for path in ("/users/new/", tom, own, f"{tom}erase/", "/audit/", "/audit/?since=never"):
        page.goto(site.url + path)
        look(path)
    page.goto(f"{site.url}/playground/")
    look("playground")
    try_on_tom(page, "what does tom deploy? " + "w" * 200)
    expect(page.locator("section[aria-labelledby=modes]")).to_be_visible()
    look("tried")

    assert {state: faults for state, faults in found.items() if faults} == {}
