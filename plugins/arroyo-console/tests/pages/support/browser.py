"""A real Chromium, Debian's, and a real server: both of this test, on this machine only."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.waiting import wait_until

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
#: Folder for pictures of what the walk sees, for docs/console.md; nothing is kept where it is not set.
PICTURES = os.environ.get("ARROYO_CONSOLE_PICTURES")
#: Of an element that should come, in milliseconds: jobs start processes.
PATIENCE_MS = 90_000


def find_chromium() -> str:
    """Where there is none, tests are skipped; in CI they fail."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "no Chromium is installed: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Serving:
    """`arroyo serve`, in a process of its own; its jobs, which would outlive it, end before it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "server.log"
        command = [sys.executable, "-m", "arroyo_core", "serve", "--in-process", "--port", str(self.port)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--data", str(folder / "data")], cwd=folder, stdout=log, stderr=log
            )
        wait_until(self._answers, problem=self._log.read_text)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/v1/ping", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    @property
    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> None:
        """Also after a test that has failed in the middle."""
        with urllib.request.urlopen(f"{self.url}/v1/pipelines") as answer:
            pipelines = json.load(answer)["items"]
        running = [
            each for each in pipelines if each["job"]["state"] not in {"created", "stopped", "finished", "failed"}
        ]
        for pipeline in running:
            request = urllib.request.Request(
                f"{self.url}/v1/pipelines/{pipeline['id']}",
                data=json.dumps({"stop": "kill"}).encode(),
                headers={"Content-Type": "application/json"},
                method="PATCH",
            )
            urllib.request.urlopen(request).close()
        wait_until(lambda: not any(each["job"]["pid"] and _is_there(each["job"]["pid"]) for each in running))
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """A browser with a folder of its own, which is removed. It may open nothing but this machine."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        context = browser.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE_MS)
        yield context
        context.close()
        browser.close()


class Window:
    """One page, with what went wrong in it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.page: Page = context.new_page()
        self.url = url
        self.wrong: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"a dialog: {dialog.message}"))
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self._look_at(request.url))

    def _look_at(self, url: str) -> None:
        if not url.startswith((self.url, self.url.replace("http", "ws", 1), "data:", "blob:")):
            self.elsewhere.append(url)

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)

    def picture(self, name: str) -> None:
        if PICTURES:
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png")

    def pictures(self, name: str) -> None:
        """In both themes, wide and narrow."""
        if not PICTURES:
            return
        for width, height in ((1280, 900), (390, 844)):
            for scheme in ("light", "dark"):
                self.page.set_viewport_size({"width": width, "height": height})
                self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                self.page.wait_for_timeout(400)
                self.page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png", full_page=True)
        self.page.set_viewport_size({"width": 1280, "height": 900})
        self.page.emulate_media(color_scheme="light")
