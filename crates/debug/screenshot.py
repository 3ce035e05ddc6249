#!/usr/bin/env python3
"""Looks at the live page in a headless Chromium: screenshot.py URL OUT.png [WIDTH HEIGHT SECONDS light|dark]

Prints what the browser's console says, and fails if that is an error or if the lanes do not move.
Needs Chromium and nothing but Python's own library.
"""
import sys, time
import browser

URL, OUT = sys.argv[1:3]
WIDTH, HEIGHT, SECONDS = (int(n) for n in (sys.argv[3:6] + ["1400", "1500", "12"][len(sys.argv[3:6]):]))
SCHEME = sys.argv[6] if len(sys.argv) > 6 else "light"

with browser.tab(WIDTH, HEIGHT, SCHEME) as tab:
    tab.call("Page.navigate", url=URL)
    time.sleep(SECONDS)
    picture = "document.getElementById('canvas').toDataURL()"
    before = tab.value(picture)
    time.sleep(0.5)
    moves = before != tab.value(picture)
    wide = tab.value("document.documentElement.scrollWidth")
    tab.screenshot(OUT)
    errors = tab.errors()
print(f"{OUT}: {errors} messages, lanes {'move' if moves else 'STAND STILL'}, {wide} of {WIDTH} pixels wide")
sys.exit(0 if errors == 0 and moves and wide <= WIDTH else 1)
