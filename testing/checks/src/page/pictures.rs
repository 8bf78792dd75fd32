//! The pictures of the guide, and that the page fits where they are made.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::page::browser::Browser;

/// The largest file, in bytes: the README is read on telephones, too.
const LARGEST: usize = 150_000;

/// A picture: its name, width and height in pixels, and the colours.
const PICTURES: [(&str, u32, u32, &str); 4] = [
    ("demo", 1280, 860, "light"),
    ("demo-dark", 1280, 860, "dark"),
    ("demo-small", 390, 844, "light"),
    ("demo-small-dark", 390, 844, "dark"),
];

/// Makes all pictures, into this folder.
///
/// # Errors
///
/// If the page does not fit into a window, or a picture is too large.
pub async fn make(browser: &mut Browser, folder: &Path) -> Result<()> {
    for (name, width, height, scheme) in PICTURES {
        browser.look(width, height, scheme).await?;
        browser
            .value("document.activeElement.blur(); scrollTo(0, 0)")
            .await?;
        let wide = browser.value(WIDE).await?;
        ensure!(wide == "", "{name}: wider than the window: {wide}");
        let faint = browser.value(FAINT).await?;
        ensure!(faint == "", "{name}: {faint}");
        let fits = "(it => it.viewBox.baseVal.width === Math.round(it.clientWidth))(document.querySelector('#flows'))";
        browser
            .until(
                "the drawing has the width of the window",
                fits,
                Duration::from_secs(10),
            )
            .await?;
        // Two frames, so that what was just changed is drawn.
        let drawn =
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
        browser
            .until("it is drawn", drawn, Duration::from_secs(10))
            .await?;
        let picture = smaller(&browser.picture().await?).await?;
        let size = picture.len();
        ensure!(size <= LARGEST, "{name}: {size} bytes are more than {LARGEST}");
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The same picture with a palette: a page has few colours.
async fn smaller(picture: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new("pngquant")
        .args(["--strip", "--speed", "1", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start pngquant, which `cargo xtask page` installs on Debian")?;
    let mut input = child.stdin.take().context("no way to pngquant")?;
    // It reads all before it writes.
    input.write_all(picture).await?;
    drop(input);
    let output = child.wait_with_output().await?;
    ensure!(output.status.success(), "pngquant: {}", output.status);
    Ok(output.stdout)
}

/// What makes the page wider than its window; empty if nothing does.
const WIDE: &str = r#"(() => {
  const page = document.documentElement;
  if (page.scrollWidth <= innerWidth && visualViewport.scale === 1) return "";
  const far = [...document.querySelectorAll("body *")].filter((it) => it.getBoundingClientRect().right > page.clientWidth + 0.5);
  return `${page.scrollWidth} of ${innerWidth} pixels: ` + far.slice(0, 3).map((it) => it.outerHTML.slice(0, 120)).join("; ");
})()"#;

/// The first text whose contrast with what is behind it is below WCAG's AA, 4.5 to 1; empty if there is none.
/// Text of a button that does not work is exempt there.
const FAINT: &str = r#"(() => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (text) => parse(text).slice(0, 3).reduce((sum, value, index) => {
    const part = value / 255;
    return sum + [0.2126, 0.7152, 0.0722][index] * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  }, 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parse(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || element.offsetParent === null || element.ariaDisabled === 'true' || element.closest("svg, script, style")) continue;
    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) return `contrast ${contrast.toFixed(2)}: ${element.textContent.slice(0, 60)}`;
  }
  return "";
})()"#;
