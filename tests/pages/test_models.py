"""The page of the models in a browser: what is needed appears, a test says how it went."""

import pytest
from playwright.sync_api import expect

from tests.pages.steps import faults_in_both_themes


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_an_operator_tries_models_before_saving_one(browse, site, locale):
    page = browse("olga", locale=locale, width=360, height=700, reduced_motion="reduce")
    page.goto(f"{site.url}/settings/")
    # the environment of these tests fixes the embeddings
    expect(page.locator("#embeddings code").first).to_have_text("EMBEDDINGS")
    part, trial = page.locator("#chat"), page.locator("#trial-chat")
    address = page.locator("#id_chat_url")
    expect(address).to_be_hidden()
    found = {"at first": faults_in_both_themes(page)}

    part.locator("button[formaction]").click()
    expect(trial.locator(".pill")).to_be_visible()

    part.locator("input[value=openai]").check()
    address.fill("http://127.0.0.1:9/v1")
    page.fill("#id_chat_model", "m")
    part.locator("button[formaction]").click()
    expect(trial.locator(".pill.bad")).to_be_visible()
    expect(trial).to_contain_text("MODEL_PRIVATE_ADDRESSES=true")
    found["refused"] = faults_in_both_themes(page)

    part.locator("button.btn-primary").click()
    expect(page.locator("#id_chat_url_error")).to_contain_text("127.0.0.1")
    expect(address).to_have_value("http://127.0.0.1:9/v1")
    found["not saved"] = faults_in_both_themes(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert {state: faults for state, faults in found.items() if faults} == {}
