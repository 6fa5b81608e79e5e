//! The verdicts on all options of a file.

use serde::{Serialize, Serializer};

use super::{OptionVerdict, mail_setting, unreadable, verdict};
use crate::config;

/// An option of a file, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedOption {
    pub line: usize,
    /// The section: a logbook, `global`, or `global` and a top group.
    pub section: String,
    /// The name as written, with its condition.
    pub option: String,
    #[serde(serialize_with = "name")]
    pub verdict: OptionVerdict,
    /// The limits, the setting or the reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remark: String,
}

fn name<S: Serializer>(verdict: &OptionVerdict, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(verdict.name())
}

/// The verdicts on all options of a file, in its order, and their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConfigCheck {
    pub options: Vec<CheckedOption>,
    pub honoured: usize,
    pub replaced: usize,
    pub not_applicable: usize,
    pub unknown: usize,
    /// Lines without a meaning, and values that cannot be read: line number and reason.
    pub faults: Vec<(usize, String)>,
}

/// Checks the options of a file.
pub fn check(bytes: &[u8]) -> ConfigCheck {
    let config = config::parse(bytes);
    let mut check = ConfigCheck { faults: config.faults, ..ConfigCheck::default() };
    for found in config.statements {
        let (verdict, mut remark) = verdict(&found.name);
        let count = match verdict {
            OptionVerdict::Honoured => &mut check.honoured,
            OptionVerdict::Replaced => &mut check.replaced,
            OptionVerdict::NotApplicable => &mut check.not_applicable,
            OptionVerdict::Unknown => &mut check.unknown,
        };
        *count += 1;
        if found.again {
            remark = "a line before this one has the same name in this section, and counts".to_owned();
        } else if let Some(why) = unreadable(&found.name, &found.value) {
            remark = why;
        } else if let Some(setting) = mail_setting(&found.name, &found.value) {
            remark = format!("{remark}: {setting}");
        }
        check.options.push(CheckedOption { line: found.line, section: found.section, option: found.name, verdict, remark });
    }
    check
}
