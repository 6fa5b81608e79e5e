//! The lines of a configuration file, so that people find the place of a setting.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// Lines of settings, from 1, by their names: `collector.keep_days`, `route[0]`, `target.night.file`.
pub type SettingLines = BTreeMap<String, usize>;

/// Returns the line of each setting of a file. A text that is no TOML has none.
pub fn lines_of(text: &str) -> SettingLines {
    let mut lines = SettingLines::new();
    if let Ok(table) = DeTable::parse(text) {
        enter_table(text, "", table.get_ref(), &mut lines);
    }
    lines
}

fn enter_table(text: &str, prefix: &str, table: &DeTable<'_>, lines: &mut SettingLines) {
    for (key, value) in table {
        enter(text, format!("{prefix}{}", key.get_ref()), key.span().start, value.get_ref(), lines);
    }
}

fn enter(text: &str, name: String, offset: usize, value: &DeValue<'_>, lines: &mut SettingLines) {
    match value {
        DeValue::Table(table) => enter_table(text, &format!("{name}."), table, lines),
        DeValue::Array(array) => {
            for (nth, one) in array.into_iter().enumerate() {
                if matches!(one.get_ref(), DeValue::Table(_)) {
                    enter(text, format!("{name}[{nth}]"), one.span().start, one.get_ref(), lines);
                    lines.insert(format!("{name}[{nth}]"), line_at(text, one.span().start));
                }
            }
        }
        _ => {}
    }
    lines.insert(name, line_at(text, offset));
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_its_line() {
        let text = "domain = \"a\"\n\n[collector]\n# Days.\nkeep_days = 365\nbackups = [\n  \"/backup\",\n]\n[[route]]\nto = [\"night\"]\n\n\
            [[route]]\nstop = true\n[target.night]\nfile = \"/n\"\n[limits]\nnode = { memory = \"off\" }\n[[quota.source]]\nnames = \"x\"\n";
        let lines = lines_of(text);
        for (name, line) in [
            ("domain", 1),
            ("collector.keep_days", 5),
            ("collector.backups", 6),
            ("route[0]", 9),
            ("route[0].to", 10),
            ("route[1]", 12),
            ("target.night.file", 15),
            ("limits.node.memory", 17),
            ("quota.source[0]", 18),
            ("quota.source[0].names", 19),
        ] {
            assert_eq!(lines.get(name), Some(&line), "{name} in {lines:?}");
        }
        assert!(lines_of("keep = ").is_empty() && !lines.contains_key("collector.keep_gb"));
    }
}
