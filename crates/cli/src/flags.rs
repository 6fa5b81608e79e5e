//! The meaning of each flag, one for all commands. A test walks through clap's tree of commands;
//! `docs/reference/flags.md` is the same table.
//!
//! A new flag is added here with the names of its value and its meaning. A flag with another meaning in one command
//! gets another name there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use clap::{Arg, Command, CommandFactory};

use crate::commands::Tampu;

/// The flags: long name, short name, names of the value (none for a switch), meaning.
const FLAGS: &[(&str, &str, &str, &str)] = &[
    ("about", "", "KIND", "Entries that a rule is about"),
    ("abs", "", "BAND", "Absolute threshold of a change"),
    ("acknowledged", "", "GRADE", "Who must have the records: all readers, the collector's disk, or its memory"),
    ("add", "", "LOGIN", "A user who joins a group"),
    ("admin", "", "", "Administrator of the logbook"),
    ("after", "", "PLACE", "Place of the previous page's last result"),
    ("all", "", "", "Everything in the list"),
    ("all-but-last", "", "", "All former revisions of an entry"),
    ("announce", "", "HOST", "Address that senders connect to"),
    ("append-only", "", "", "Changes of entries are never allowed"),
    ("archive-abs", "", "BAND", "Absolute threshold of archive events"),
    ("archive-period", "", "DURATION", "Longest time without an archive event"),
    ("archive-rel", "", "BAND", "Relative threshold of archive events"),
    ("as", "", "NAME", "Name of the replay"),
    ("attach", "", "", "Records that levels hold back are published while this command runs"),
    ("attachment", "", "FILE, NAME", "File of an entry"),
    (
        "attribute",
        "a",
        "NAME=VALUE, NAME[=OPTION,OPTION...], NAME",
        "Attribute of an entry, its definition in a logbook, or an attribute with events",
    ),
    ("attributes", "", "N", "Number of attributes"),
    ("audience", "", "NAME,...", "Audiences of a record or a stream"),
    ("author", "", "NAME", "Author of an entry"),
    ("authority", "", "", "The authority is signed again, too"),
    ("bandwidth", "", "", "Events and bytes a second instead of events"),
    ("block", "", "SIZE", "Size of a block"),
    ("before", "", "", "State before a change"),
    ("book", "b", "NAME", "Logbook"),
    ("book-listen", "", "ADDRESS", "Address of the logbook's pages and API"),
    ("bounded", "", "", "Slow clients are waited for only as long as an application does"),
    ("buffer", "", "SIZE", "Memory for receivers that are behind"),
    ("bus", "", "ADDRESS", "Address of a hub on the bus, beside that of its logbook"),
    ("by", "", "NAME, NAME,...", "Field or attribute to group by"),
    ("bytes", "", "SIZE", "Amount of data after which a measurement ends"),
    ("callers", "", "N", "Number of threads that make calls"),
    ("central", "", "", "Level of published records"),
    ("certificates", "", "DIR", "Directory of this host's certificates"),
    ("change", "", "NUMBER", "Change whose lines are shown"),
    ("checksum", "", "CHECKSUM", "Checksums on the data"),
    ("clients", "", "N", "Number of clients"),
    ("color", "", "WHEN", "Colours of the output"),
    ("columns", "", "NAME,...", "Columns to show, in this order"),
    ("comment", "", "TEXT", "Comment on a token"),
    ("computed", "", "NAME=RULE", "Attribute that a rule makes from others"),
    ("config", "c", "FILE", "Configuration file of the hub"),
    ("contains", "", "TEXT", "Text that a record contains"),
    ("continue", "", "", "Data that receivers have already is skipped"),
    ("control", "", "NAME", "Name under which others may control transfers"),
    ("count", "", "", "Only the number of results is printed"),
    ("csv", "", "", "CSV with a heading"),
    ("data", "", "DIR", "Tampu's data directory, or a PostgreSQL address for the logbook"),
    ("default-level", "", "LEVEL", "Level of records that name none"),
    ("definition", "", "FILE", "JSON definition of a logbook"),
    ("delivery", "", "DELIVERY", "Delivery of events"),
    ("demo", "", "", "Simulated observatory"),
    ("digest", "", "KIND", "Time of the mails of a rule"),
    ("direct", "", "", "Readers connect to the writer's process"),
    ("domain", "", "NAME", "Name of the installation"),
    ("dotfiles", "", "", "Names may begin with a dot"),
    ("elog-config", "", "FILE", "ELOG's configuration file"),
    ("elog-listen", "", "ADDRESS", "Address of ELOG's protocol alone"),
    ("elog-passwords", "", "FILE", "Password file of elogd whose passwords are kept if they are the same"),
    ("engine", "", "NAME", "Engine of the bus"),
    ("email", "", "ADDRESS", "E-mail address of a user"),
    ("encoding", "e", "ENCODING", "Markup of a text"),
    ("errors", "", "N", "Number of errors that are listed one by one"),
    ("every", "", "DURATION", "One result for each span of this length"),
    ("exclude", "", "TEXT", "Text that a record does not contain"),
    ("exclude-regex", "", "REGEX", "Expression that a record does not match"),
    ("explain", "", "", "The origin of each right"),
    ("field", "", "NAME=PATTERN", "Pattern of a further field"),
    ("file", "", "FILE", "File with the text of an entry"),
    ("file-size", "", "SIZE", "Size after which a new file begins"),
    ("files", "", "DIR", "Directory with the files of entries"),
    ("flow", "", "NAME, PATTERN", "Flow of a stream"),
    ("follow-links", "", "", "Symbolic links in directories are followed"),
    ("for", "", "DURATION", "Time after which the command ends"),
    ("force", "", "", "Unknown attributes are kept"),
    ("format", "f", "FORMAT", "Format of a file"),
    ("frame", "", "SIZE", "Largest frame"),
    ("from", "", "STREAM", "Stream to receive"),
    ("from-json", "", "", "Standard input has JSON objects"),
    ("full-name", "", "NAME", "Full name of a user"),
    ("good-for", "", "DURATION", "Lifetime of a token"),
    ("group", "", "NAME", "Group of a user"),
    ("guests", "", "RIGHTS", "Rights of guests"),
    ("gz", "", "", "Files are compressed"),
    ("handshake", "", "HANDSHAKE", "Acknowledgement of each block"),
    ("held", "", "", "Records that writers still hold come first"),
    ("help", "h", "", "Help"),
    ("highlight", "", "REGEX", "Expression whose matches are highlighted"),
    ("host", "", "PATTERN,..., PATTERN", "Host that a record or a transfer comes from"),
    ("html", "", "", "Text as sanitised HTML"),
    ("hub", "", "ADDRESS", "Hub to connect to"),
    ("id", "", "ID", "Id of a record or a transfer"),
    ("immediate", "", "N", "Immediate records a second"),
    ("in-process", "", "", "All roles run in one process"),
    ("instance", "", "NAME", "Name of the bridge"),
    ("interface", "", "INTERFACE", "Network interface of multicast"),
    ("interval", "", "DURATION", "Time between two reports, or two looks at counters"),
    ("join", "", "FILE", "The file with which a host joins the domain"),
    ("journal", "", "", "The host's journal"),
    ("json", "", "", "JSON objects, one a line"),
    ("keep", "", "N", "Number of records kept in memory"),
    ("key", "", "KEY", "Public key of signatures"),
    ("key-file", "", "FILE", "File with the domain's key"),
    ("kind", "k", "KIND,...", "Kinds of events"),
    ("lan", "", "ADDRESS", "Address at which the network is open"),
    ("last", "", "N", "Number of archived records to begin with"),
    ("latest", "", "", "Lost values are replaced by newer ones"),
    ("layout", "", "FILE", "Layout of a PDF"),
    ("layout-file", "", "FILE", "Picture or font of a layout"),
    ("level", "", "LEVEL, LEVEL,...", "Level of a record, exactly"),
    ("level-regex", "", "REGEX", "Expression that finds the level of a line"),
    ("limit", "n", "N", "Largest number of results"),
    ("link", "", "LINK", "Link of an entry"),
    ("list", "", "", "Only a list, and nothing changes"),
    ("listen", "", "ADDRESS", "Address for incoming connections"),
    ("live", "", "", "No collector takes part"),
    ("loans", "", "", "Samples are lent in shared memory"),
    ("local", "", "", "Level of printed records"),
    ("lock", "", "", "Entries are locked by a signature"),
    ("locked-after", "", "DURATION", "Time for changes by everybody"),
    ("logger", "", "NAME, PATTERN,...", "Named logger of a record"),
    ("loggers", "", "", "Counters of the loggers"),
    ("login", "", "LOGIN", "User who is meant"),
    ("logs", "", "", "Each process has a logger"),
    ("loops", "", "N", "Number of repetitions"),
    ("lossy", "", "", "Missed records are skipped"),
    ("make-admin", "", "LOGIN", "User who becomes an administrator"),
    ("may", "", "RIGHT", "Right of a token"),
    ("meaning", "", "TEXT, MEANING[=WHO]", "Meaning of a signature"),
    ("members", "", "N", "Number of processes that only join"),
    ("min-change", "", "BAND", "Smallest change that is shown, in percent"),
    ("min-delta", "", "BAND", "Smallest change that is shown, in the unit of the attribute"),
    ("min-level", "l", "LEVEL", "Least severe level"),
    ("mode", "", "MODE", "ACS's audience mode"),
    ("multi-line", "", "NAME", "Attribute of several lines"),
    ("multicast", "", "ADDRESS[:PORT]", "Multicast group"),
    ("name", "", "NAME", "Further name or address of a host"),
    ("new-key", "", "", "New key pairs"),
    ("new-names", "", "", "Names of its present certificate are left out unless they are given"),
    ("no-database", "", "", "No Tango database"),
    ("no-disk", "", "", "The disk is not measured"),
    ("no-encryption", "", "", "Connections to other hosts are not encrypted"),
    ("no-first", "", "", "The current value is skipped"),
    ("no-open", "", "", "No page in a browser"),
    ("no-password", "", "", "Tokens only"),
    ("no-tail", "", "", "No live log"),
    ("none", "", "", "All of them are removed"),
    ("not", "", "NAME=PATTERN", "Condition on records to leave out"),
    ("now", "", "", "No wait for followers"),
    ("ns", "", "", "Times in XML with nine decimals"),
    ("off", "", "", "Nothing of the kind"),
    ("offline", "", "", "Done in the files of a hub that does not run"),
    ("oldest-first", "", "", "The oldest result comes first"),
    ("on-start", "", "", "Data is sent at each start that others ask for"),
    ("once", "", "", "The command ends at the end of its input"),
    ("outcome", "", "OUTCOME", "State or result of a transfer"),
    ("output", "o", "DIR, FILE, PATH", "File or directory to write"),
    ("own-within", "", "DURATION", "Time for changes by the author"),
    ("packet", "", "N", "Records in a packet"),
    ("parameter", "", "TEXT", "Text that receivers get before the data, or a part of it"),
    ("password-file", "", "NAME", "Password file of ELOG, as `elogd.cfg` names it"),
    ("past", "", "", "Past transfers"),
    ("patience", "", "DURATION", "Longest time that a receiver may take no data"),
    ("patterns", "", "N", "Counts by the place in the program that logged"),
    ("pause-keep", "", "N", "Number of records kept while paused"),
    ("peer", "", "ADDRESS", "Node of another host"),
    ("period", "", "DURATION", "Time between periodic events"),
    ("plain", "", "", "Only fields that ACS's tools know"),
    ("plain-http", "", "", "Other hosts reach the logbook without encryption"),
    ("poll", "", "DURATION", "Time between two readings"),
    ("post", "", "", "The summary is posted"),
    ("process", "p", "NAME, PATTERN, PATTERN,...", "Process: of a record, or of this command on the bus"),
    ("processes", "", "", "Counters of the processes that send records"),
    ("protection", "", "PROTECTION", "Least protection of bulk data on connections"),
    ("protocol", "", "PROTOCOL", "Transport of bulk data"),
    ("python", "", "PATH", "Python interpreter"),
    ("quality", "", "QUALITY,...", "Qualities of readings"),
    ("queued", "", "", "By the queue, as any other mail"),
    ("quiet", "q", "", "Nothing is printed unless something fails"),
    ("rate", "", "N", "Events or records a second"),
    ("rates", "", "", "Events a second instead of events"),
    ("raw-csv", "", "", "CSV whose cells are as they are, also formulas"),
    ("readers", "", "N", "Number of readers"),
    ("reason", "", "TEXT", "Reason of a change, which is kept with it"),
    ("receiver", "", "PATTERN", "Receiver of a transfer"),
    ("receivers", "", "N", "Number of receivers"),
    ("records", "", "N", "Number of records after which a new file begins"),
    ("regex", "", "REGEX", "Expression that a record matches"),
    ("rel", "", "BAND", "Relative threshold of a change, in percent"),
    ("relay", "", "", "A distributor takes part"),
    ("remove", "", "LOGIN", "A user who leaves a group"),
    ("replace", "", "", "Existing attributes or files are replaced"),
    ("replayed", "", "NAME", "Replay to follow"),
    ("replies", "", "", "All replies are included"),
    ("required", "", "NAME", "Attribute that must have a value"),
    ("rescan", "", "", "Files are scanned again and again"),
    ("resume", "", "DURATION", "Time that a transfer stays open without its sender"),
    ("revision", "", "N", "Revision of an entry"),
    ("revisions", "", "", "All revisions of an entry"),
    ("roles", "", "ROLE,...", "Roles of the hub"),
    ("run", "", "RUN", "Run that a record belongs to"),
    ("scratch", "", "DIR", "Directory for temporary data of a measurement"),
    ("seed", "", "N", "Seed of the simulation"),
    ("serve", "", "PATTERN", "Attributes to serve"),
    ("set", "", "NAME=VALUE", "Value for a template"),
    ("since", "", "TIME", "Begin of the time range"),
    ("site", "", "", "All hosts of the domain"),
    ("size", "", "SIZE", "Size of a sample, value, record or block"),
    ("skip", "", "N", "Number of results to skip"),
    ("slow", "", "SLOW", "Treatment of slow receivers"),
    ("sort", "", "COLUMN", "Column to sort by"),
    ("source", "s", "NAME, PATTERN,..., PATTERN", "Source of a record, as the column SOURCE shows it, or sender of a transfer"),
    ("span", "", "ID", "Span that a record belongs to (W3C Trace Context)"),
    ("spectrum", "", "", "Values are spectra"),
    ("speed", "", "FACTOR", "Speed relative to real time"),
    ("stack", "", "ID", "Id of an error chain"),
    ("stack-level", "", "N", "Position in an error chain"),
    ("start", "", "REGEX", "Expression at the first line of a record"),
    ("state", "", "FILE", "File with the committed position"),
    ("stay", "", "DURATION", "Time to stay after the last value"),
    ("stopped", "", "N", "Number of stopped clients"),
    ("stream", "", "NAME, PATTERN", "Stream of bulk data"),
    ("subject", "", "TEXT", "Name of a person at a login method"),
    ("subscribe", "", "PATTERN", "Attributes of Tango"),
    ("sync", "", "", "Files are synced before the acknowledgement"),
    ("tags", "", "NAME", "Attribute of free labels"),
    ("tail", "", "", "Live log"),
    ("tango-host", "", "ADDRESS", "Tango database"),
    ("template", "", "NAME", "Template of an entry"),
    ("text", "t", "TEXT", "Text of an entry"),
    ("thread", "", "", "All entries of a thread"),
    ("throttle", "", "SIZE", "Bytes a second at most"),
    ("timeout", "", "DURATION", "Longest time that the command waits"),
    ("to", "", "STREAM", "Stream to send"),
    ("token", "", "TOKEN", "Token to log in with"),
    ("trace", "", "ID", "Trace that a record belongs to (W3C Trace Context)"),
    ("ttl", "", "N", "Number of networks that multicast may cross"),
    ("type", "", "TYPE", "Data type"),
    ("undo", "", "", "Boxes are cleared"),
    ("unit", "", "UNIT", "Unit of a value"),
    ("until", "", "TIME", "End of the time range"),
    ("user", "", "", "User events"),
    ("utc", "", "", "Times in UTC"),
    ("value", "", "NAME=VALUE", "Named value of a record"),
    ("version", "V", "", "Version"),
    ("wait", "", "DURATION", "Longest time to wait for receivers"),
    ("webhook", "", "URL", "Address that gets entries in place of mail"),
    ("where", "", "CONDITION", "Condition with and, or, not: on the value of an event, or on fields and named data of records"),
    ("xml", "", "", "ACS XML"),
    ("yes", "", "", "No question before an action that cannot be undone"),
    ("zone", "", "ZONE", "Zone of local times"),
];

/// Calls `look` with every visible command, and its path.
fn walk<'c>(command: &'c Command, path: &str, look: &mut dyn FnMut(&str, &'c Command)) {
    look(path, command);
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        walk(verb, &format!("{path} {}", verb.get_name()), look);
    }
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional())
}

/// The name of a flag's value as help shows it; nothing for a switch.
fn value_of(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    arg.get_value_names().unwrap_or_default().iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_flag_has_one_meaning() {
    let tampu = Tampu::command();
    let table: BTreeMap<&str, (&str, Vec<&str>)> =
        FLAGS.iter().map(|(long, short, values, _)| (*long, (*short, values.split(", ").collect()))).collect();
    assert_eq!(table.len(), FLAGS.len(), "a flag stands twice in the table");
    let mut used = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    let mut wrong = Vec::new();
    walk(&tampu, "tampu", &mut |path, command| {
        for arg in flags(command) {
            let (long, value) = (arg.get_long().unwrap_or_default(), value_of(arg));
            let short = arg.get_short().map(String::from);
            used.insert(long.to_owned());
            match table.get(long) {
                None => wrong.push(format!("{path} --{long} {value}: not in the table")),
                Some((_, values)) if !values.contains(&value.as_str()) => {
                    wrong.push(format!("{path} --{long} {value}: its value is called {}", values.join(" or ")));
                }
                Some((known, _)) if short.as_deref().is_some_and(|short| short != *known) => {
                    wrong.push(format!("{path} --{long} -{}: its short name is '{known}'", short.unwrap_or_default()));
                }
                Some(_) => {}
            }
            let aliases = arg.get_all_aliases().unwrap_or_default();
            if !aliases.is_empty() {
                wrong.push(format!("{path} --{long}: it has the other names {}", aliases.join(", ")));
            }
        }
    });
    wrong.extend(table.keys().filter(|long| !used.contains(**long)).map(|long| format!("--{long}: no command has it")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_short_name_has_one_meaning() {
    let mut shorts = BTreeMap::new();
    for (long, short, ..) in FLAGS.iter().filter(|flag| !flag.1.is_empty()) {
        assert_eq!(shorts.insert(*short, *long), None, "-{short}");
    }
}

/// Checks that commands with output for programs have `--json`. The others write files, fill the terminal, or print
/// text that is made for another program.
#[test]
fn every_command_with_output_has_json() {
    const WITHOUT: &[&str] =
        &["tampu up", "tampu demo", "tampu log send", "tampu log view", "tampu completions", "tampu man", "tampu book export"];
    let tampu = Tampu::command();
    let mut without = Vec::new();
    walk(&tampu, "tampu", &mut |path, command| {
        // A global flag of a parent also counts for its subcommands.
        let words: Vec<&str> = path.split(' ').skip(1).collect();
        let mut at = &tampu;
        let mut has = false;
        for word in words {
            let Some(next) = at.find_subcommand(word) else { break };
            at = next;
            has |= flags(at).any(|arg| arg.get_long() == Some("json") && (arg.is_global_set() || std::ptr::eq(at, command)));
        }
        if !command.has_subcommands() && !has {
            without.push(path.to_owned());
        }
    });
    assert_eq!(without.iter().map(String::as_str).collect::<BTreeSet<_>>(), WITHOUT.iter().copied().collect());
}

/// The first words of help are those of plain sentences, as for documentation.
#[test]
fn help_opens_with_a_noun_or_a_verb() {
    const OPENERS: &[&str] =
        &["who", "whom", "whose", "what", "whatever", "how", "whether", "where", "wherever", "which", "why", "when", "whoever"];
    let mut wrong = Vec::new();
    let mut check = |place: String, text: Option<String>| {
        let text = text.unwrap_or_default();
        let first = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
        if OPENERS.contains(&first.as_str()) || text.split_whitespace().count() == 0 {
            wrong.push(format!("{place}: {text}"));
        }
    };
    let tampu = Tampu::command();
    walk(&tampu, "tampu", &mut |path, command| {
        check(path.to_owned(), command.get_about().map(ToString::to_string));
        for arg in command.get_arguments() {
            check(format!("{path} {}", arg.get_id()), arg.get_help().map(ToString::to_string));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks the page of the documentation; `TAMPU_WRITE=1 cargo test -p tampu-cli flags` writes it.
#[test]
fn the_page_of_flags_is_this_table() {
    let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let tampu = Tampu::command();
    walk(&tampu, "tampu", &mut |path, command| {
        for arg in flags(command) {
            let name = path.strip_prefix("tampu ").unwrap_or("all");
            commands.entry(arg.get_long().unwrap_or_default().to_owned()).or_default().insert(name.to_owned());
        }
    });
    let mut page = String::from(
        "# Flags\n\nEach flag means the same in every command that has it. Durations are texts with units (`500ms`, `10m`, `2h30m`), sizes\n\
         too (`4096`, `64MiB`, `100MB`). Times are local unless they end with `Z` or an offset, or `--utc` is given: `10m`\n\
         (ago), `08:15`, `yesterday`, `2026-11-21T08:15:30`. Patterns know `*` and `?`.\n\n| flag | meaning | commands |\n|-|-|-|\n",
    );
    for (long, short, values, meaning) in FLAGS {
        let short = if short.is_empty() { String::new() } else { format!("`-{short}`, ") };
        let value = if values.is_empty() { String::new() } else { format!(" {values}").replace('|', "\\|") };
        let used = match commands.get(*long) {
            Some(used) if !used.contains("all") => used.iter().cloned().collect::<Vec<_>>().join(", "),
            _ => "all".to_owned(),
        };
        let _ = writeln!(page, "| {short}`--{long}{value}` | {meaning} | {used} |");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/flags.md");
    if std::env::var_os("TAMPU_WRITE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == page, "docs/reference/flags.md is older than the flags: TAMPU_WRITE=1 cargo test -p tampu-cli flags");
}
