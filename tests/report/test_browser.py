"""The page in a real browser: quiet, offline, no wider than a phone, usable by keys."""

from __future__ import annotations

import pytest

from holdfast.report import grouped, load, render, write

EVIL = "<img src=http://example.invalid/x.png onerror=\"document.title='run'\"><script>document.title='run'</script>"
OVERFLOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
TIP = "[...document.querySelectorAll('.tip:not([hidden])')].map(t => t.innerText.replace(/\\s+/g, ' ').trim())"


@pytest.fixture
def path(make, tmp_path):
    counts = [[(7 * i + 3 * c) % 11 * (i % 3) for c in range(10)] for i in range(100)]
    scores = [0.1, 0.2, 0.5, 0.6, 0.7, 0.8]
    folders = [
        make(f"{m}/{s}", method=method, seed=s, scores=scores[s:], rounds=6 - s, counts=counts, hash=f"{s}" * 64)
        for m, method in enumerate((EVIL, "sam(rho=0.1, eps=1e-07) + scaffold + specgrad(r=0.05) + prox(mu=0.01)"))
        for s in (0, 1)
    ]
    html = render(grouped([load(folder) for folder in folders]), title=EVIL, target=0.7, command="holdfast " * 40)
    write(tmp_path / "report.html", html)
    return tmp_path / "report.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 820, 390])
def test_quiet_offline_and_no_wider_than_the_screen(browser, path, width, dark):
    browser.open(path, width, dark=dark)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.value(OVERFLOW) is False
    assert browser.value("document.title").startswith("<img")
    assert browser.value("getComputedStyle(document.documentElement).colorScheme") == ("dark" if dark else "light")
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]


def test_keys_read_the_charts(browser, path):
    browser.open(path)
    browser.value("document.querySelector('#curves svg.wide').focus()")
    browser.key("Home")
    browser.key("ArrowRight")
    (tip,) = browser.value(TIP)
    assert tip.startswith("round 2") and "20.00" in tip
    browser.key("Escape")
    assert browser.value(TIP) == []
    browser.value("document.querySelector('#split svg.wide').focus()")
    browser.key("ArrowRight")
    browser.key("ArrowDown")
    (tip,) = browser.value(TIP)
    assert tip.startswith("client 1, class 1") and "10 of" in tip
    assert browser.complaints() == []


def test_buttons(browser, path):
    browser.open(path)
    browser.value("document.getElementById('theme').click()")
    assert browser.value("getComputedStyle(document.documentElement).colorScheme") == "dark"
    browser.value("localStorage.clear()")
    browser.value("document.querySelector('.key-of').click()")
    assert browser.value("document.querySelector('.key-of').getAttribute('aria-pressed')") == "false"
    shown = "getComputedStyle(document.querySelector('#curves svg.wide g.g0')).display"
    assert browser.value(shown) == "none"
    browser.value("document.querySelector('.key-of').click()")
    assert browser.value(shown) != "none"
    assert browser.complaints() == []
