//! Forms, and what becomes of them.

use super::{desk::Desk, support::site::TestSite};

fn form(options: &str, path: &str) -> super::support::site::Answer {
    let site = TestSite::new(&format!("[b]\nAttributes = Author, Type\nOptions Type = Routine{{a}}, Problem\n{options}"));
    site.post("b", "2026-01-01T08:00:00", &["Author=Zoe", "Type=Routine"], "text");
    site.get(path)
}

#[test]
fn an_edit_leaves_a_fixed_text_alone() {
    let fixed = |options: &str, path: &str| form(options, path).body.contains(" readonly>");
    assert!(fixed("Fix text = 1\n", "/b/1?cmd=Edit"));
    assert!(!fixed("Fix text = 1\n", "/b/?cmd=New") && !fixed("", "/b/1?cmd=Edit"));
    let desk = Desk::new("[b]\nAttributes = Author\nFix text = 1\n");
    let id = desk.fields("/b/", &[("cmd", "Submit"), ("Author", "Zoe"), ("encoding", "plain"), ("Text", "as it was")]).id();
    let id = id.to_string();
    let edit = [("cmd", "Submit"), ("edit_id", id.as_str()), ("Author", "Kim"), ("encoding", "ELCode"), ("Text", "changed")];
    assert_eq!(desk.fields("/b/", &edit).id().to_string(), id);
    let raw = desk.get(&format!("/b/{id}?cmd=Download")).text();
    assert!(raw.contains("Author: Kim") && raw.contains("as it was") && raw.contains("Encoding: plain"), "{raw}");
}

#[test]
fn lines_end_where_the_field_ends_them() {
    assert_eq!(form("Hard wrap = 1\n", "/b/?cmd=New").page().one("textarea[name=Text]").get("wrap"), "hard");
    assert_eq!(form("", "/b/?cmd=New").page().one("textarea[name=Text]").get("wrap"), "");
}

#[test]
fn the_comment_above_the_text_depends_on_conditions() {
    let options = "Message comment = usual\n{a}Message comment = what is done each day\n";
    let comment = |path: &str| form(options, path).page().texts("td.messageedit div.comment");
    assert_eq!(comment("/b/?cmd=New"), ["usual"]);
    assert_eq!(comment("/b/1?cmd=Edit"), ["what is done each day"]);
}

#[test]
fn an_extendable_choice_takes_another_value() {
    let desk = Desk::new("[b]\nAttributes = Author, State\nROptions State = open, closed\nExtendable Options = State\n");
    let form = desk.get("/b/?cmd=New").text();
    assert!(form.contains("name=\"State_0\""), "{form}");
    let post = |chosen: &str, typed: &str| {
        let fields = [("cmd", "Submit"), ("Author", "Zoe"), ("State", chosen), ("State_0", typed), ("Text", "x")];
        let id = desk.fields("/b/", &fields).id();
        desk.get(&format!("/b/{id}?cmd=Download")).text()
    };
    assert!(post("open", "").contains("State: open"));
    assert!(post("open", "waiting").contains("State: waiting"));
    // From then on it is one of the options.
    assert!(desk.get("/b/?cmd=New").text().contains("value=\"waiting\""));
    let fixed = Desk::new("[b]\nAttributes = Author, State\nROptions State = open, closed\n");
    assert!(!fixed.get("/b/?cmd=New").text().contains("name=\"State_0\""));
}

#[test]
fn smileys_of_elcode_are_shown() {
    let text = |options: &str, encoding: &str| {
        let desk = Desk::new(&format!("[b]\nAttributes = Author\n{options}"));
        desk.fields("/b/", &[("cmd", "Submit"), ("Author", "Zoe"), ("encoding", encoding), ("Text", "done :-)")]).id();
        desk.get("/b/1").text()
    };
    assert!(text("", "ELCode").contains("\u{1f642}") && !text("", "plain").contains("\u{1f642}"));
    assert!(!text("Enable smileys = 0\n", "ELCode").contains("\u{1f642}"));
}

#[test]
fn text_files_are_shown_with_their_first_lines() {
    let page = |options: &str, name: &'static str| {
        let desk = Desk::new(&format!("[b]\nAttributes = Author\n{options}"));
        let part = |name: &'static str, value: &'static [u8]| (name, None, value);
        let file = ("attfile1", Some(name), &b"one <b>\ntwo\nthree\n"[..]);
        desk.post("/b/", &[part("cmd", b"Submit"), part("Author", b"Zoe"), part("Text", b"x"), file]).id();
        (desk.get("/b/1").text(), desk.get("/b/1?cmd=Edit").text())
    };
    assert!(page("", "run.log").0.contains("one &lt;b&gt;\ntwo\nthree\n</pre>"));
    let cut = page("Attachment lines = 2\n", "run.log").0;
    assert!(cut.contains("two\n</pre>") && !cut.contains("three") && cut.contains("The file is longer"), "{cut}");
    assert!(!page("Attachment lines = 0\n", "run.log").0.contains("attachmenttext"));
    assert!(!page("", "run.bin").0.contains("attachmenttext"));
    // The form shows the images that the entry has.
    assert!(page("", "plot.png").1.contains("class=\"preview\""));
    assert!(!page("Preview attachments = 0\n", "plot.png").1.contains("class=\"preview\""));
}

#[test]
fn boxes_have_lines_and_tooltips_of_their_own() {
    let page = |options: &str| {
        let site = TestSite::new(&format!("[b]\nAttributes = Author, System\nMOptions System = HV, Gas\n{options}"));
        site.get("/b/?cmd=New").page()
    };
    let shaped = page("Format System = 2\nTooltip System HV = high voltage\n");
    assert_eq!(shaped.all("td.separate").len(), 1);
    let titles: Vec<String> = shaped.all("td.separate label").iter().map(|label| label.get("title").to_owned()).collect();
    assert_eq!(titles, ["high voltage", ""]);
    assert!(page("Format System = 1\n").all("td.separate").is_empty());
}
