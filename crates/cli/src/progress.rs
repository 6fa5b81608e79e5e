//! Progress bars, on a terminal only; scripts and logs get none.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over this many bytes; invisible where standard error is no terminal.
pub fn bytes(total: u64, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    // The template is a constant that indicatif accepts; without it the bar has the default look. Numbers have a fixed width, so
    // that the line does not jump, and the units of the final line.
    let template = "{msg}  {wide_bar} {percent:>3} %  {decimal_bytes:>9} of {decimal_total_bytes}  {decimal_bytes_per_sec:>11}  {eta:>3} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// Returns a progress bar that is not drawn.
pub fn hidden() -> ProgressBar {
    ProgressBar::hidden()
}

/// Makes a bar of bytes without a known end; invisible if standard error is no terminal.
pub fn bytes_without_end(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{msg}  {decimal_bytes}  {decimal_bytes_per_sec}  {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// Makes a line that names the awaited event; invisible if standard error is no terminal.
pub fn waiting() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Makes a count of records without a known end; invisible if standard error is no terminal.
pub fn records(what: &str) -> ProgressBar {
    // If records go to the terminal, a count between them would disturb.
    if !std::io::stderr().is_terminal() || std::io::stdout().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{msg} {human_pos} records {per_sec} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// A bar over this many records; invisible where standard error is no terminal.
pub fn counted(total: u64, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} records {per_sec}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// Makes a bar over work with a size that becomes known on the way; invisible if standard error is no terminal.
pub fn work(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {elapsed} {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}
