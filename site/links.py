"""Makes one site of pages that lie in different folders of the repository.

The sources link to each other, and to files that are no pages, by their places in the repository: there they are read most. In the site the
pages under docs/ are at its root; the few from elsewhere keep their paths.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent

# Pages of the site that do not lie under docs/.
ELSEWHERE = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "GOVERNANCE.md", "MAINTAINERS.md", "ROADMAP.md", "SECURITY.md", "deploy/chart/README.md", "deploy/phoenixnap/chart/README.md"]

# A link of Markdown, or a fence of code, in which nothing is a link.
LINK_OR_CODE = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)|`[^`\n]*`(?!\])|\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^()\s]+)\)", re.M | re.S)


def on_files(files, config):
    for path in ELSEWHERE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def in_repository(page):
    """Where a page of the site lies in the repository."""
    return page if page in ELSEWHERE else "docs/" + page


def in_site(path):
    """The page of the site that a file of the repository is; None if it is not one."""
    if path in ELSEWHERE:
        return path
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    folder = posixpath.dirname(in_repository(here))

    def moved(match):
        text, to = match["text"], match["to"]
        if to is None or re.match(r"[a-z]+:|#", to):
            return match[0]
        path, mark, anchor = to.partition("#")
        target = posixpath.normpath(posixpath.join(folder, path))
        known = in_site(target)
        if known is not None:
            return f"[{text}]({posixpath.relpath(known, posixpath.dirname(here) or '.')}{mark}{anchor})"
        if not (ROOT / target).exists():
            raise SystemExit(f"{in_repository(here)}: {to} leads nowhere")
        return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{target})" if config.repo_url else text

    return LINK_OR_CODE.sub(moved, markdown)
