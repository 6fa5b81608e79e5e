//! ELOG's commands: the values of `cmd=`, the right that each needs, and the menus that list it.

use PageCommand::*;
use tampu_logbook::people::Right;

/// A command of ELOG's addresses, menus and forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCommand {
    /// An empty form.
    New,
    /// The form of an entry.
    Edit,
    /// The form of an answer.
    Reply,
    /// The form of a new entry like this one.
    Duplicate,
    /// Deletes an entry.
    Delete,
    /// The form of a search.
    Find,
    List,
    /// Selects several entries at once.
    Select,
    /// The page of one's own account.
    Config,
    /// Shows the configuration of the book.
    Admin,
    /// Shows the help page.
    Help,
    /// The form to log in.
    Login,
    /// Ends a session.
    Logout,
    /// Copies an entry to another book.
    CopyTo,
    /// Moves an entry to another book.
    MoveTo,
    /// Downloads an entry in ELOG's file format.
    Download,
    /// Imports entries from a table.
    CsvImport,
    /// Imports entries from XML.
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
    /// Lists the last ten entries.
    LastTen,
    /// Sends a form.
    Submit,
    /// Applies the changes of a form and shows it again.
    Update,
    /// Shows the form again, with the text as the entry will show it.
    Preview,
    /// Saves the form as a draft.
    Save,
    /// Deletes a draft.
    DropDraft,
    /// Ticks items of an entry's checklist.
    Tick,
    /// Signs an entry.
    Sign,
    /// Reports the state of an entry while its form is open, and who else has it open.
    Editing,
    /// Leaves a form.
    Back,
    /// Searches with the form of `Find`.
    Search,
    /// Requests a new password by mail.
    Forgot,
    /// Registers a new user.
    NewUser,
    /// The users of the site, for its administrators.
    Users,
    /// Changes one's own password.
    ChangePassword,
}

/// All commands, with ELOG's names.
const ALL: [(PageCommand, &str); 39] = [
    (New, "New"),
    (Edit, "Edit"),
    (Reply, "Reply"),
    (Duplicate, "Duplicate"),
    (Delete, "Delete"),
    (Find, "Find"),
    (List, "List"),
    (Select, "Select"),
    (Config, "Config"),
    (Admin, "Admin"),
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
    (Preview, "Preview"),
    (Save, "Save"),
    (DropDraft, "Drop draft"),
    (Tick, "Tick"),
    (Sign, "Sign"),
    (Editing, "Editing"),
    (Back, "Back"),
    (Search, "Search"),
    (Forgot, "Forgot"),
    (NewUser, "New user"),
    (Users, "Users"),
    (ChangePassword, "Change password"),
];

/// The default menu of an entry.
pub const ENTRY_MENU: [PageCommand; 9] = [List, New, Edit, Delete, Reply, Duplicate, Find, Config, Help];
/// The default menu of a list.
pub const LIST_MENU: [PageCommand; 7] = [New, Find, Select, CsvImport, LastDay, Config, Help];

impl PageCommand {
    /// The command of this name, compared without case; a blank may be `_`.
    pub fn named(name: &str) -> Option<PageCommand> {
        let name = name.replace('_', " ");
        let name = name.trim();
        // ELOG's older menus have other names for these commands.
        let alias =
            [("Back to list", List), ("Copy", CopyTo), ("Move", MoveTo), ("Change config", Config), ("Change elogd.cfg", Admin)];
        let mut known = ALL.into_iter().map(|(command, known)| (known, command)).chain(alias);
        known.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, command)| command)
    }

    /// Returns ELOG's name of the command.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(command, _)| *command == self).map_or("", |(_, name)| name)
    }

    /// Returns the right that the command needs. For commands that change an entry, its owner is checked as well.
    pub const fn right(self) -> Right {
        match self {
            New | Reply | Duplicate | CsvImport | XmlImport | CopyTo | Submit | Update | Preview | Save | DropDraft | Editing => {
                Right::Write
            }
            Edit | Delete | MoveTo | Tick => Right::EditOwn,
            Admin => Right::Admin,
            _ => Right::Read,
        }
    }

    /// Returns true if a configured menu has to list the command for it to be allowed.
    pub const fn is_in_menus(self) -> bool {
        matches!(
            self,
            New | Edit
                | Reply
                | Duplicate
                | Delete
                | Find
                | Select
                | Config
                | ChangePassword
                | CopyTo
                | MoveTo
                | CsvImport
                | XmlImport
        )
    }

    /// Returns true if the command is for users only, also where guests may read.
    pub const fn needs_login(self) -> bool {
        matches!(self, Config | ChangePassword | Admin | Users | Sign)
    }

    /// Returns true if the command is about one entry.
    pub const fn is_of_entry(self) -> bool {
        matches!(self, Edit | Reply | Duplicate | Delete | Download | CopyTo | MoveTo)
    }

    /// Returns true if a menu shows the command as a link.
    pub const fn has_page(self) -> bool {
        !matches!(
            self,
            Submit | Update | Preview | Save | DropDraft | Tick | Sign | Editing | Back | Search | GetMd5 | Forgot | NewUser
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_name() {
        for (command, name) in ALL {
            assert_eq!((PageCommand::named(name), command.name()), (Some(command), name));
        }
        assert_eq!(PageCommand::named("copy_TO"), Some(PageCommand::CopyTo));
        assert_eq!(PageCommand::named("Coffee"), None);
    }
}
