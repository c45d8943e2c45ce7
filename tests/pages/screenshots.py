"""Pictures of every screen and state: ./run screenshots.

In both languages, both themes, on a desktop and a phone, with an index of them all.
"""

import html
import json
import re
import sys
import tempfile
import time
from itertools import product as combinations
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import expect, sync_playwright

from tests.pages import chromium
from tests.pages.site import add_account, started

CHROMIUM = chromium.find()  # here, for where playwright runs already it cannot be asked
LANGUAGES = {"zh": "zh-CN", "en": "en-US"}
THEMES = ("light", "dark")
SIZES = {1280: 800, 360: 740}
# whose memories are in which language, and words of theirs
PEOPLE = {"zh": "meilin", "en": "tom"}
WORDS = {"zh": "猫", "en": "invoice"}
SENTENCES = {
    "zh": "林美琳对花生过敏，点外卖要先确认。",
    "en": "Tom deploys on Tuesdays and Thursdays.",
}
MESSAGE = {"zh": "雅思考试的目标是多少？", "en": "When is the HSK exam?"}
REASON = {"zh": "美琳说小满忘了她的猫，来查一下", "en": "Tom says that Atlas forgot his branch"}


class View(NamedTuple):
    """A browser's page as one of the combinations shows it."""

    page: object
    url: str
    language: str

    def go(self, path):
        self.page.goto(self.url + path)

    def settle(self):
        expect(self.page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)

    def answer_to(self, act):
        """Wait for what htmx asks for, once `act` is done."""
        with self.page.expect_response(lambda answer: "hx-request" in answer.request.headers):
            act()
        self.settle()

    def open_first(self, tab=""):
        # of a search, so that it is the same memory, with a history
        self.go(f"/memories/?q={WORDS[self.language]}")
        self.page.goto(self.page.locator("[data-row]").first.evaluate("row => row.href"))
        if tab:
            self.answer_to(self.page.locator(f".tabs a[href*='tab={tab}']").click)

    def go_by(self, path, link):
        """Go where the first link of a page leads."""
        self.go(path)
        self.page.goto(self.page.locator(link).first.evaluate("link => link.href"))

    def send(self, scope="main"):
        self.page.locator(f"{scope} .btn-primary, {scope} .btn-danger").last.click()


def wrong_password(view):
    view.go("/accounts/login/")
    # too many tries with one name are refused in other words
    view.page.fill("input[name=login]", f"nobody-{time.monotonic_ns()}")
    view.page.fill("input[name=password]", "wrong")
    view.page.click("main form.h-form button[type=submit]")
    expect(view.page.locator("[role=alert]")).to_be_visible()


def more_filters(view):
    view.go("/memories/")
    view.page.click(".h-more summary")


def bulk_bar(view):
    view.go("/memories/")
    for number in range(3):
        view.page.locator(".mi input[type=checkbox]").nth(number).check()


def edit(view):
    view.open_first()
    view.answer_to(view.page.locator("[data-key=e]").click)


def conflict(view):
    edit(view)
    view.page.fill("textarea[name=content]", SENTENCES[view.language])
    view.page.locator("input[name=version]").evaluate("field => { field.value = 0 }")
    view.answer_to(lambda: view.send("form[data-edit]"))
    expect(view.page.locator("form[data-edit] [role=alert]")).to_be_visible()


def deleted(view):
    view.go("/memories/?sort=oldest")
    view.answer_to(view.page.locator("[data-row]").first.click)
    view.answer_to(view.page.locator("[data-deletes] button").click)


def undo(view):
    view.answer_to(view.page.locator("#toasts button").click)


def similar(view):
    view.go("/memories/new/")
    view.answer_to(lambda: view.page.fill("textarea[name=content]", SENTENCES[view.language]))


def erase_refused(view):
    view.go("/me/memory/")
    view.page.fill("input[name=confirm]", "somebody")
    view.page.click("main .btn-danger")
    expect(view.page.locator("#refused")).to_be_visible()


def palette(view):
    view.go("/memories/")
    view.answer_to(lambda: view.page.keyboard.press("Control+k"))
    view.answer_to(lambda: view.page.keyboard.insert_text(WORDS[view.language]))


def keys_sheet(view):
    view.go("/memories/")
    view.page.keyboard.press("?")
    expect(view.page.locator("#keys")).to_be_visible()


def ask_to_read(view):
    name = PEOPLE[view.language]
    view.go(f"/users/?q={name}")
    view.page.locator(f"a[href*='user_id={name}']").first.click()
    expect(view.page.locator("textarea[name=reason]")).to_be_visible()


def reading(view):
    ask_to_read(view)
    view.page.fill("textarea[name=reason]", REASON[view.language])
    view.send()
    view.page.wait_for_url(re.compile(r"/users/read/\d+/$"))


def preview(view):
    view.go("/agents/mentor/settings/")  # of the others something was changed: that takes a reason
    view.page.locator("#preview select").select_option(PEOPLE[view.language])
    view.page.fill("#preview [name=message]", MESSAGE[view.language])
    expect(view.page.locator("#preview .hit").first).to_be_visible()


def tried(view):
    view.go("/playground/")
    view.page.select_option("[name=agent]", "mentor")
    view.page.fill("[name=user_id]", PEOPLE[view.language])
    view.page.fill("[name=query]", MESSAGE[view.language])
    view.answer_to(view.page.locator("main .btn-primary").click)


def looked_at(view):
    """A look at an import with a new row, one that is there already, and a bad one."""
    view.go("/import/")
    rows = [{"content": SENTENCES[view.language]}, {"content": ""}, {"type": "nobody"}]
    lines = "\n".join(json.dumps(each, ensure_ascii=False) for each in rows)
    file = {"name": "notes.jsonl", "mimeType": "text/plain", "buffer": lines.encode()}
    view.page.set_input_files("[name=file]", file)
    view.send()
    view.page.wait_for_url(re.compile(r"/import/\d+/$"))


# of whom: nobody, the OWNER of memories, …; an address or what is done to get there, and back
OWNER, EMPTY, OPERATOR = "owner", "erin", "olga"
SCREENS = {
    "login": (None, "/accounts/login/"),
    "wrong password": (None, wrong_password),
    "list": (OWNER, "/memories/"),
    "list, narrowed": (OWNER, "/memories/?type=project&importance=0.6"),
    "search": (OWNER, lambda view: view.go(f"/memories/?q={WORDS[view.language]}")),
    "no hits": (OWNER, lambda view: view.go(f"/memories/?q={WORDS[view.language]}&tag=xyzzy")),
    "more filters": (OWNER, more_filters),
    "bulk bar": (OWNER, bulk_bar),
    "detail, history": (OWNER, lambda view: view.open_first()),
    "detail, recalls": (OWNER, lambda view: view.open_first("recalls")),
    "detail, similar": (OWNER, lambda view: view.open_first("similar")),
    "detail, metadata": (OWNER, lambda view: view.open_first("metadata")),
    "edit": (OWNER, edit),
    "conflict": (OWNER, conflict),
    "deleted": (OWNER, deleted, undo),
    "trash": (OWNER, "/memories/trash/"),
    "trash, empty": (EMPTY, "/memories/trash/"),
    "new": (OWNER, similar),
    "palette": (OWNER, palette),
    "keys": (OWNER, keys_sheet),
    "my data": (OWNER, "/me/memory/"),
    "erase refused": (OWNER, erase_refused),
    "receipt": (EMPTY, "/me/memory/"),
    "preferences": (OWNER, "/me/"),
    "two factors": (OWNER, "/accounts/2fa/"),
    "change password": (OWNER, "/accounts/password/change/"),
    "overview": (OPERATOR, "/"),
    "overview, mine": (OWNER, "/"),
    "agents": (OPERATOR, "/agents/"),
    "agent, new": (OPERATOR, "/agents/+new/"),
    "agent": (OPERATOR, "/agents/atlas/"),
    "agent, preview": (OPERATOR, preview),
    "agent, connect": (OPERATOR, "/agents/atlas/connect/"),
    "agent, activity": (OPERATOR, "/agents/atlas/activity/"),
    "connect and keys": (OPERATOR, "/keys/"),
    "jobs": (OPERATOR, "/jobs/"),
    "import": (OWNER, "/import/"),
    "import, looked at": (OWNER, looked_at),
    "export": (OWNER, "/export/"),
    "audit": (OPERATOR, "/audit/"),
    "playground": (OPERATOR, tried),
    "models": (OPERATOR, "/settings/"),
    "system": (OPERATOR, "/system/"),
    "users": (OPERATOR, "/users/"),
    "user": (OPERATOR, lambda view: view.go_by("/users/", "main th a")),
    "user, new": (OPERATOR, "/users/new/"),
    "reason to read": (OPERATOR, ask_to_read),
    "reading": (OPERATOR, reading),
    "empty account": (EMPTY, "/memories/"),
    "not found": (OWNER, "/memories/1/"),
}


def log_in(browser, site, name):
    """Return the state of a browser in which somebody is logged in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.url}/memories/")
    page.fill("input[name=login]", name)
    page.fill("input[name=password]", site.passwords[name])
    page.click("main form.h-form button[type=submit]")
    page.wait_for_url("**/memories/")
    state = context.storage_state()
    context.close()
    return state


def make_history(browser, site, states):
    """Give memories a history and the trash something; let the newcomer erase everything."""
    for language, name in (*PEOPLE.items(), ("en", EMPTY)):
        context = browser.new_context(locale=LANGUAGES[language], storage_state=states[name])
        view = View(context.new_page(), site.url, language)
        view.go("/memories/new/")
        view.page.fill("textarea[name=content]", SENTENCES[language])
        view.send()
        view.page.wait_for_url(re.compile(r"/memories/\d+/"))
        if name == EMPTY:
            view.go("/me/memory/")
            view.page.fill("input[name=confirm]", EMPTY)
            view.page.click("main .btn-danger")
            while view.page.locator("text=Erased and verified").count() == 0:
                view.page.wait_for_timeout(500)
                view.page.reload()
        else:
            view.page.click("[data-deletes] button")
            edit(view)
            text = view.page.input_value("textarea[name=content]")
            view.page.fill("textarea[name=content]", f"{text} {SENTENCES[language]}")
            view.answer_to(lambda: view.send("form[data-edit]"))  # noqa: B023
        context.close()


def take(browser, site, states, folder):
    """Take all pictures; return the names of the files by screen and combination."""
    files = {}
    for language, theme, width in combinations(LANGUAGES, THEMES, SIZES):
        combination = f"{language} {theme} {width}"
        print(combination, flush=True)
        views = {}
        for who, name in ((None, None), (OWNER, PEOPLE[language]), (EMPTY,) * 2, (OPERATOR,) * 2):
            context = browser.new_context(
                locale=LANGUAGES[language],
                color_scheme=theme,
                viewport={"width": width, "height": SIZES[width]},
                reduced_motion="reduce",
                storage_state=states.get(name),
            )
            context.set_default_timeout(10_000)
            views[who] = View(context.new_page(), site.url, language)
        for screen, (who, way, *back) in SCREENS.items():
            view = views[who]
            view.go(way) if isinstance(way, str) else way(view)
            view.settle()
            # the header would be where the page was scrolled to
            view.page.evaluate("scrollTo(0, 0)")
            file = f"{screen} {combination}.png".replace(", ", "-").replace(" ", "-")
            view.page.screenshot(path=folder / file, full_page=True)
            files[screen, combination] = file
            for act in back:
                act(view)
        for view in views.values():
            view.page.context.close()
    return files


def write_index(files, folder):
    """Write a page that shows them, a screen a row."""
    rows = []
    for screen in SCREENS:
        cells = [
            f'<a href="{file}"><img src="{file}" alt="" loading="lazy"><br>{combination}</a>'
            for (of, combination), file in files.items()
            if of == screen
        ]
        rows.append(f"<h2>{html.escape(screen)}</h2><div>{''.join(cells)}</div>")
    style = "div{display:flex;gap:1em;overflow-x:auto}img{height:18em;border:1px solid #999}"
    page = f"<!doctype html><meta charset=utf-8><title>Hippo</title><style>{style}</style>"
    (folder / "index.html").write_text(page + "\n".join(rows), encoding="utf-8")


def main(folder):
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as data, started(Path(data)) as site, sync_playwright() as p:
        add_account(site, EMPTY)
        browser = p.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-quic"]
        )
        states = {name: log_in(browser, site, name) for name in site.passwords}
        make_history(browser, site, states)
        write_index(take(browser, site, states, folder), folder)
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} pictures: {folder / 'index.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
