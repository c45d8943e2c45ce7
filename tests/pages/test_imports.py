"""A file is looked at, imported with the pill going round, and taken out again."""

import csv
import json

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.steps import AXE, rows, search

ROWS = 3_000


def faults(page):
    violations = Axe().run(page, options=AXE).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in violations]


def text_of(number):
    return f"walk {number}: 支付模块周五上线，联调排在 12 月 3 日，错误码由周宁负责"


def write_file(path):
    """Write memories as JSON lines; two of them are none."""
    lines = [{"type": "project", "content": text_of(n)} for n in range(ROWS)]
    lines[10] = {"type": "nonsense", "content": "this row has no such type"}
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text(f"{text}\nno JSON\n", encoding="utf-8")


@on_both_engines
def test_a_file_comes_in_with_its_bad_rows_told_and_goes_out_again(browse, site, tmp_path):
    page, found = browse("tom"), {}
    write_file(tmp_path / "notes.jsonl")

    page.goto(f"{site.url}/memories/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.click("main a:has-text('Import')")
    found["form"] = faults(page)
    page.select_option("select[name=place]", index=0)
    page.set_input_files("input[name=file]", tmp_path / "notes.jsonl")
    page.click("main form button.btn-primary")
    # so large a file is looked at by a worker
    page.click("a:has-text('See what would be imported')", timeout=60_000)
    expect(page.locator(".chip[href$=new]")).to_contain_text(str(ROWS - 1))
    page.click(".chip[href$=error]")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tbody tr").first).to_contain_text("11")
    found["look"] = faults(page)

    page.click(f"button:has-text('Import {ROWS - 1} memories')")
    expect(page.locator("#job-pill .jobpill")).to_contain_text("Import")
    expect(page.locator("#job progress")).to_be_visible()
    found["at work"] = faults(page)
    expect(page.locator("#job-pill .jobpill")).to_contain_text("done", timeout=90_000)
    expect(page.locator("#job")).to_contain_text(f"{ROWS - 1} new")
    with page.expect_download() as download:
        page.click("a:has-text('Download the failed rows')")
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["line", "11", str(ROWS + 1)]
    found["done"] = faults(page)
    page.goto(f"{site.url}/memories/")
    search(page, "walk 2999")
    expect(rows(page).first).to_contain_text("walk 2999")

    page.goto(f"{site.url}/export/?type=project")
    found["export"] = faults(page)
    page.select_option("select[name=format]", "csv")
    page.click("main form button.btn-primary")
    page.wait_for_selector("#job a:has-text('Download')", timeout=60_000)
    with page.expect_download() as download:
        page.click("#job a:has-text('Download')")
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        contents = {row["content"] for row in csv.DictReader(file)}
    assert {text_of(n) for n in (0, 9, 11, ROWS - 1)} <= contents
    page.goto(f"{site.url}/jobs/")
    found["jobs"] = faults(page)
    assert {name: each for name, each in found.items() if each} == {}


def test_a_small_file_comes_in_without_scripts_and_pages_fit_a_phone(browse, site, tmp_path):
    page = browse("meilin", java_script_enabled=False, width=360, height=700)
    path = tmp_path / f"{'n' * 80}.csv"
    path.write_text(f"content\n{'W' * 300}\n{'x' * 200}\n", encoding="utf-8")
    addresses = []

    page.goto(f"{site.url}/import/")
    page.set_input_files("input[name=file]", path)
    page.click("main form button.btn-primary")
    addresses.append(page.url)
    expect(page.locator("tbody tr")).to_have_count(2)
    page.click("button:has-text('Import 2 memories')")
    addresses.append(page.url)
    for _ in range(30):
        page.wait_for_timeout(1_000)
        page.reload()
        if "2 new" in page.locator("#job").inner_text():
            break
    expect(page.locator("#job")).to_contain_text("2 new")

    page = browse("meilin", width=360, height=700)
    for address in (*addresses, f"{site.url}/jobs/", f"{site.url}/import/", f"{site.url}/export/"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
