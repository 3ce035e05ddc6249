#!/usr/bin/env python3
"""Opens a trace in Go's viewer, in a headless Chromium: viewer.py FILE.trace OUT.png [WIDTH HEIGHT]

Takes a picture of the page that shows goroutines by processor, prints what each processor ran, by name, and
fails if fewer than two have run goroutines that have one, or the page has no more than a heading.
Needs Chromium, Go (the variable GOSCHED_TEST_GO, or the search path), and nothing but Python's own library.
"""
import json, os, re, signal, subprocess, sys, time
import browser

FILE, OUT = sys.argv[1:3]
WIDTH, HEIGHT = (int(n) for n in (sys.argv[3:5] + ["1600", "900"][len(sys.argv[3:5]):]))
GO = os.environ.get("GOSCHED_TEST_GO", "go")
# How near the picture is taken, and where along the page.
ZOOMS, ZOOM_AT = 8, 0.5
# What the page holds once it is drawn: for each row, how often each goroutine is on it.
ROWS = """JSON.stringify((() => {
  const view = document.querySelector('tr-ui-timeline-view') || document.querySelector('#trace-viewer');
  if (!view || !view.model) return [];
  return view.model.getAllThreads().map(thread => {
    const names = {};
    for (const slice of thread.sliceGroup.slices) names[slice.title] = (names[slice.title] || 0) + 1;
    return [thread.userFriendlyName, names];
  });
})())"""


def rows(tab):
    text = tab.value(ROWS)
    return [row for row in json.loads(text or "[]") if re.search(r"\bProc \d", row[0])]


def look(url):
    with browser.tab(WIDTH, HEIGHT) as tab:
        tab.call("Page.navigate", url=url + "/trace?view=proc")
        until = time.time() + 120
        while not rows(tab) and time.time() < until:
            time.sleep(0.2)
        time.sleep(1)  # It draws after it has loaded.
        # Nearer, until names fit into the slices: its keys are a game's.
        at = dict(x=WIDTH * ZOOM_AT, y=HEIGHT // 3)
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        for _ in range(ZOOMS):
            tab.call("Input.dispatchKeyEvent", type="keyDown", key="w", code="KeyW", text="w", windowsVirtualKeyCode=87)
            tab.call("Input.dispatchKeyEvent", type="keyUp", key="w", code="KeyW", windowsVirtualKeyCode=87)
            time.sleep(0.3)
        time.sleep(1)
        tab.screenshot(OUT)
        return rows(tab)


viewer = subprocess.Popen([GO, "tool", "trace", "-http=127.0.0.1:0", FILE], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "BROWSER": "true"}, start_new_session=True)
try:
    lines = iter(viewer.stderr.readline, "")
    url = next((found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+", line))), None)
    if url is None:
        sys.exit("the viewer has not begun to serve")
    found = look(url)
finally:
    os.killpg(viewer.pid, signal.SIGKILL)  # `go` has a child.
    viewer.wait()
named = 0
for row, names in found:
    goroutines = {name: count for name, count in names.items() if re.match(r"G\d+ .*\w::\w", name)}
    named += bool(goroutines)
    most = sorted(goroutines.items(), key=lambda one: -one[1])[:5]
    print(f"{row}: {sum(names.values())} slices;", ", ".join(f"{name} ({count})" for name, count in most))
print(f"{OUT}: {named} processors with named goroutines")
sys.exit(0 if named >= 2 else 1)
