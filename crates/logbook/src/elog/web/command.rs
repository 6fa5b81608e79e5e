//! ELOG's commands: what `cmd=` can be, what each needs, and where a menu has it.

use crate::people::Right;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// An empty form.
    New,
    /// The form of an entry.
    Edit,
    /// The form of an answer.
    Reply,
    /// The form of a new entry like this one.
    Duplicate,
    /// Takes an entry away.
    Delete,
    /// The form of a search.
    Find,
    /// The list.
    List,
    /// Several entries at once.
    Select,
    /// What is configured.
    Config,
    /// How it is used.
    Help,
    /// The form to log in.
    Login,
    /// Ends a session.
    Logout,
    /// Makes an entry once more in another book.
    CopyTo,
    /// Takes an entry to another book.
    MoveTo,
    /// An entry as it stands in ELOG's files.
    Download,
    /// Entries from a table.
    CsvImport,
    /// Entries from XML.
    XmlImport,
    /// Digests of all entries.
    GetMd5,
    /// The first entry of a search.
    First,
    /// The entry before.
    Previous,
    /// The entry after.
    Next,
    /// The last entry of a search.
    Last,
    /// The entries of a day.
    LastDay,
    /// Ten entries.
    LastTen,
    /// Sends a form.
    Submit,
    /// Takes a form's changes over and shows it again.
    Update,
    /// Keeps what was written as a draft.
    Save,
    /// Leaves a form.
    Back,
    /// Searches.
    Search,
    /// A new password by mail.
    Forgot,
    /// Another password.
    ChangePassword,
}

use Command::*;

/// All of them, with ELOG's name.
const ALL: [(Command, &str); 31] = [
    (New, "New"),
    (Edit, "Edit"),
    (Reply, "Reply"),
    (Duplicate, "Duplicate"),
    (Delete, "Delete"),
    (Find, "Find"),
    (List, "List"),
    (Select, "Select"),
    (Config, "Config"),
    (Help, "Help"),
    (Login, "Login"),
    (Logout, "Logout"),
    (CopyTo, "Copy to"),
    (MoveTo, "Move to"),
    (Download, "Download"),
    (CsvImport, "CSV Import"),
    (XmlImport, "XML Import"),
    (GetMd5, "GetMD5"),
    (First, "First"),
    (Previous, "Previous"),
    (Next, "Next"),
    (Last, "Last"),
    (LastDay, "Last day"),
    (LastTen, "Last 10"),
    (Submit, "Submit"),
    (Update, "Update"),
    (Save, "Save"),
    (Back, "Back"),
    (Search, "Search"),
    (Forgot, "Forgot"),
    (ChangePassword, "Change password"),
];

/// What an entry's menu has if nothing is configured.
pub const ENTRY_MENU: [Command; 9] = [List, New, Edit, Delete, Reply, Duplicate, Find, Config, Help];
/// What a list's menu has.
pub const LIST_MENU: [Command; 6] = [New, Find, Select, CsvImport, Config, Help];

impl Command {
    /// The command of this name, compared without case; a blank may be `_`.
    pub fn named(name: &str) -> Option<Command> {
        let name = name.replace('_', " ");
        let name = name.trim();
        // ELOG's older menus say Back for List, and Move and Copy for what they do now.
        let alias = [("Back to list", List), ("Copy", CopyTo), ("Move", MoveTo), ("Change config", Config), ("Admin", Config)];
        let mut known = ALL.into_iter().map(|(command, known)| (known, command)).chain(alias);
        known.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, command)| command)
    }

    /// ELOG's name for it.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(command, _)| *command == self).map_or("", |(_, name)| name)
    }

    /// What somebody needs to be let do it. For what changes an entry, whose it is decides further.
    pub const fn right(self) -> Right {
        match self {
            New | Reply | Duplicate | CsvImport | XmlImport | CopyTo | Submit | Update | Save => Right::Write,
            Edit | Delete | MoveTo => Right::EditOwn,
            Config => Right::Admin,
            _ => Right::Read,
        }
    }

    /// Whether a menu has to list it, where there is one, for it to be allowed.
    pub const fn is_in_menus(self) -> bool {
        matches!(self, New | Edit | Reply | Duplicate | Delete | Find | Select | Config | CopyTo | MoveTo | CsvImport | XmlImport)
    }

    /// Whether it speaks of one entry.
    pub const fn is_of_entry(self) -> bool {
        matches!(self, Edit | Reply | Duplicate | Delete | Download | CopyTo | MoveTo)
    }

    /// Whether a menu shows it as a link of its own, with pages that we have.
    pub const fn has_page(self) -> bool {
        !matches!(self, Submit | Update | Save | Back | Search | GetMd5 | ChangePassword | Forgot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_name() {
        for (command, name) in ALL {
            assert_eq!((Command::named(name), command.name()), (Some(command), name));
        }
        assert_eq!(Command::named("copy_TO"), Some(Command::CopyTo));
        assert_eq!(Command::named("Coffee"), None);
    }
}
