"""What `arroyo doctor` finds on the server's machine."""

from __future__ import annotations

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import Site, frame, heading, html, refused, section
from arroyo_console.pages.words import Safe, facts, joined, table, tag
from arroyo_console.values import Finding, ServerInfo

_TONES = {"ok": "ok", "warning": "warn", "failed": "bad"}


async def doctor_page(site: Site) -> None:
    with frame("Doctor", here="/doctor"):
        with ui.element("div").classes("bar wide"):
            heading("Doctor")
            again = ui.button("Look again", color=None).classes("plain").props("flat")
        info = await site.live.get(site.console.info)
        with section("This server"):
            html(_server(info))
        with section("Checks"):
            found = html(tag("p", "Looking: this takes some seconds.", role="status"))

        async def look(fresh_s: float = 60.0) -> None:
            again.disable()
            try:
                found.set_content(_findings(await site.live.get(site.console.doctor, fresh_s=fresh_s)))
            except ConsoleError as error:
                found.set_content(tag("p", refused(error), role="alert"))
            finally:
                again.enable()

        again.on_click(lambda: look(fresh_s=0.0))
        ui.timer(0.05, look, once=True)


def _server(info: ServerInfo) -> Safe:
    return facts(
        [
            ("version", info.version),
            ("supervises jobs", "yes" if info.is_supervisor else f"no, {info.supervisor or 'another server'} does"),
            ("jobs run on", info.master),
            ("code while planning", "allowed" if info.allows_code else "not allowed"),
            ("languages", ", ".join(info.languages)),
        ]
    )


def _findings(findings: tuple[Finding, ...]) -> Safe:
    bad = sum(finding.level != "ok" for finding in findings)
    said = "Nothing is wrong." if not bad else f"{bad} of {len(findings)} checks found something."
    lines = [
        [
            tag("span", finding.level, class_=f"badge {_TONES.get(finding.level, 'quiet')}"),
            finding.check,
            finding.message,
            finding.fix,
        ]
        for finding in sorted(
            findings, key=lambda each: list(_TONES).index(each.level) if each.level in _TONES else 0, reverse=True
        )
    ]
    return joined([tag("p", said, role="status"), table("checks", ("is", "check", "found", "what to do"), lines)])
