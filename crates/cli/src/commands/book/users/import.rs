//! `tampu book users import-elog`: the users of ELOG's password files.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tampu_logbook::people::{
    People, PeopleError,
    password::Given,
    password_files::{PasswordFiles, SELF_REGISTERED, is_group_of_file},
    user::User,
};

use super::{
    super::text::shown,
    keeper::{Keeper, wrong},
};
use crate::{
    failure::{Failure, Outcome},
    plural::counted,
};

/// Import the users of ELOG's password file, in any of its forms; their passwords stay valid
#[derive(Debug, Args)]
pub struct Import {
    /// Path of the file
    file: PathBuf,
    /// Make this user an administrator; repeatable
    #[arg(long, value_name = "LOGIN")]
    make_admin: Vec<String>,
    /// The value of `Password file` that the file stands for [default: the one with its name]
    #[arg(long, value_name = "NAME")]
    password_file: Option<String>,
}

impl Import {
    pub fn run(self, keeper: &Keeper, say: &mut dyn FnMut(String, Value) -> Outcome) -> Outcome {
        let Keeper::Here(people) = keeper else {
            return Err(Failure::Usage(
                "ELOG's users are taken over where the logbooks are kept and not over HTTP: without --hub, and with --data DIR or \
                 --data postgres://..., on a host that has them; a hub that runs there knows them at once"
                    .to_owned(),
            ));
        };
        let bytes = std::fs::read(&self.file).map_err(|error| Failure::failed(self.file.display(), error))?;
        let mut read = tampu_elog::users::read(&bytes);
        if let Some(login) = self.make_admin.iter().find(|login| read.users.iter().all(|user| user.login != **login)) {
            return Err(Failure::Usage(format!("--make-admin {}: the file has no such user", shown(login, false))));
        }
        let group = self.group(&people.password_files().map_err(wrong)?)?;
        let (mut new, mut known) = (0u64, 0u64);
        for user in std::mem::take(&mut read.users) {
            let user = User { admin: self.make_admin.contains(&user.login), groups: vec![group.clone()], ..user };
            match people.add_user(user.clone()) {
                Ok(()) => new += 1,
                Err(PeopleError::IsThere(_)) => {
                    known += 1;
                    read.faults.extend(known_user(people, &user, &group)?);
                }
                Err(error) => return Err(wrong(error)),
            }
        }
        read.faults.iter().for_each(|fault| eprintln!("{}: {}", self.file.display(), shown(fault, false)));
        eprintln!(
            "tampu: ELOG's own clients send a digest in place of a password: for them set accept_elog_hashes in [book] of the hub's configuration"
        );
        let faults = read.faults.len();
        let text = format!("{} taken over, {known} already here, {}", counted(new, "user"), counted(faults as u64, "fault"));
        say(text, json!({ "new": new, "known": known, "faults": faults, "group": group }))
    }

    /// Returns the group of the file's users.
    fn group(&self, files: &PasswordFiles) -> Result<String, Failure> {
        let value = match &self.password_file {
            Some(value) => value.clone(),
            None => value_of(files, &self.file)?,
        };
        if !files.is_empty() && !files.has(&value) {
            eprintln!(
                "tampu: no logbook has 'Password file = {}': its users are not admitted to logbooks with '{}'. If the file is one of \
                 these, run the command again with --password-file",
                shown(&value, false),
                listed(&files.values())
            );
        }
        Ok(files.group(&value))
    }
}

/// Returns the value of `Password file` that a file stands for.
fn value_of(files: &PasswordFiles, file: &Path) -> Result<String, Failure> {
    let path = file.canonicalize().map_err(|error| Failure::failed(file.display(), error))?;
    files.value_of(&path).map_err(|values| {
        let values = listed(&values);
        Failure::Usage(format!("{}: logbooks have the password files '{values}'; name one with --password-file", file.display()))
    })
}

fn listed(values: &[String]) -> String {
    values.iter().map(|value| shown(value, false)).collect::<Vec<_>>().join("', '")
}

/// Gives a user of the file who is here already the file's group, and perhaps the rights of an administrator. The user's
/// password stays, because the user may have changed it since the last import. Returns the reason for which the user is
/// not given the group.
fn known_user(people: &People, user: &User, group: &str) -> Result<Option<String>, Failure> {
    let there = people.user(&user.login).map_err(wrong)?;
    let is_member = there.groups.iter().any(|name| name == group);
    let is_same = is_member || is_one_person(&there, user);
    if user.admin && !there.admin || is_same && !is_member {
        let change = |there: &mut User| {
            there.admin |= user.admin;
            if is_same && !there.groups.iter().any(|name| name == group) {
                there.groups.push(group.to_owned());
            }
        };
        people.change_user(&user.login, change).map_err(wrong)?;
    }
    Ok((!is_same).then(|| {
        format!(
            "user '{login}' is here from another password file, or registered here, and has another password: it may be another \
             person, who is not admitted to logbooks of this file; 'tampu book users group \"{group}\" --add {login}' admits the user",
            login = user.login
        )
    }))
}

/// Returns true if a user of a file is the same person as a known user. Users of several files, and those who registered
/// themselves, chose their logins each for themselves; the same password proves the person.
fn is_one_person(there: &User, of_file: &User) -> bool {
    let chose_the_login = there.groups.iter().any(|group| group == SELF_REGISTERED || is_group_of_file(group));
    let digest = of_file.password.as_ref().and_then(|password| password.elog_digest());
    let proves = |digest: &str| there.password.as_ref().is_some_and(|password| password.is(Given::PlainOrDigest(digest)));
    !chose_the_login || digest.is_some_and(proves)
}
