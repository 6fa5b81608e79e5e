//! Bounds of entries, uploads, pictures and notifications.

use crate::bounds::bound::{
    Bound,
    Limit::{Constant, Setting},
    bound, mib,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "contents in a page of a thread or a history",
        Constant("logbook/src/store/part.rs", "PAGE_BYTES", "4 << 20", "4 MiB"),
        "the page ends with the entry that reaches them, and says where the next one begins",
    ),
    bound(
        "entries of a thread on one of ELOG's pages",
        Constant("elog/src/pages/list/rows.rs", "MAX_THREAD", "500", "500"),
        "the page shows the first ones and says so",
    ),
    bound(
        "requests of one address and one kind that wait",
        Constant("hub/src/http/admission.rs", "WAITING_OF_ONE", "32", "32, for 10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        "entries that are counted for a guest",
        Constant("hub/src/api/searches.rs", "GUEST_COUNT", "10_000", "10 000"),
        "the count is a lower limit, and says so",
    ),
    bound("body of a guest who may write nowhere", Constant("hub/src/http/body.rs", "OF_GUESTS", "SMALL", "64 KiB"), "413"),
    bound(
        "a text that is shown with its marks",
        Constant("logbook/src/render.rs", "MAX_MARKUP", "1 << 20", "1 MiB"),
        "it is shown as source, with a note",
    ),
    bound(
        "cache of rendered texts",
        Constant("logbook/src/render/cache.rs", "CACHE", "8 << 20", "8 MiB for each site"),
        "the ones used longest ago are evicted",
    ),
    bound(
        "memory of answers that are made of texts above 1 MiB, fifteen bytes for each byte of a text",
        Constant("logbook/src/render/room.rs", "ROOM", "160 << 20", "160 MiB for each site"),
        "further ones wait up to 10 s, and then say that the text was not rendered, or get 503",
    ),
    bound(
        "answers above 1 MiB that are made and not yet sent",
        Constant("hub/src/http/answers.rs", "ROOM", "160 << 20", "160 MiB"),
        "further ones wait for 10 s, and then get 503; one longer than this is sent alone",
    ),
    bound(
        "answers above 1 MiB that one address is being sent",
        Constant("hub/src/http/answers.rs", "ROOM_OF_ONE", "ROOM / 2", "80 MiB"),
        "further ones wait for 10 s, and then get 503",
    ),
    bound(
        "answers above 1 MiB that wait for memory",
        Constant("hub/src/http/answers.rs", "WAITING", "64 << 20", "64 MiB"),
        "further ones get 503 at once",
    ),
    bound(
        "answers above 1 MiB to one address that wait for memory",
        Constant("hub/src/http/answers.rs", "WAITING_OF_ONE", "WAITING / 2", "32 MiB"),
        "further ones get 503 at once",
    ),
    bound("subscribers of searches", Constant("hub/src/api/push.rs", "SUBSCRIBERS", "256", "256"), "503"),
    bound("subscribers of one login", Constant("hub/src/api/push.rs", "OF_ONE", "32", "32"), "503"),
    bound(
        "events that wait for a subscriber",
        Constant("hub/src/api/push.rs", "QUEUE", "256", "256"),
        "the subscriber is disconnected with the event 'cut'",
    ),
    bound(
        "uploaded files of one login without an entry",
        Constant("hub/src/api/staging.rs", "OF_ONE", "128", "128, for one hour, or three days after a draft with them was saved"),
        "409",
    ),
    bound(
        "size of one sender's uploaded files without an entry",
        Setting("book.waiting_mb", |config| mib(config.book.waiting_mb)),
        "409; all senders together have four times as much",
    ),
    bound(
        "free space that uploads leave on the disk, a twentieth of a small disk",
        Setting("book.min_free_mb", |config| mib(config.book.min_free_mb)),
        "507",
    ),
    bound(
        "changes of one address at a time",
        Constant("hub/src/http/admission.rs", "CHANGES_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        "new words and their endings that one entry adds to the vocabulary",
        Constant("logbook/src/query/candidates.rs", "MAX_ENDINGS", "30_000", "30 000"),
        "a search for parts of words reads the entry itself",
    ),
    bound(
        "uploaded files without an entry",
        Constant("hub/src/api/staging.rs", "OF_ALL", "2048", "2048, for one hour, or three days with a draft"),
        "409",
    ),
    bound(
        "pixels of a side of a picture with a preview",
        Constant("hub/src/api/preview.rs", "MAX_SIDE", "16_384", "16 384"),
        "422",
    ),
    bound("memory for reading a picture", Constant("hub/src/api/preview.rs", "MAX_BYTES", "128 << 20", "128 MiB"), "422"),
    bound(
        "cache of previews",
        Constant("hub/src/api/preview.rs", "CACHE", "16 << 20", "16 MiB"),
        "the one used longest ago is dropped",
    ),
    bound(
        "lead of an entry's date over the hub's clock",
        Constant("hub/src/api/input.rs", "AHEAD", "300 * 1_000_000_000", "300 s"),
        "400",
    ),
    bound("saved filters of logs of one user", Constant("logbook/src/people/log_filter.rs", "MOST", "200", "200"), "409"),
    bound("saved searches of one user", Constant("hub/src/api/searches.rs", "MAX_SAVED", "1000", "1000"), "409"),
    bound("rules of notification of one user", Constant("logbook/src/notify/rule.rs", "RULES", "50", "50"), "422"),
    bound(
        "entries that wait for the mails of one user",
        Constant("logbook/src/notify/pending.rs", "WAITING", "500", "500"),
        "further ones are only counted in the mail",
    ),
    bound(
        "recipients that options of ELOG name for one entry",
        Constant("elog/src/pages/mails/recipients.rs", "OF_OPTIONS", "200", "200"),
        "the others get no mail",
    ),
    bound(
        "conversations with mail servers at a time",
        Constant("hub/src/book/mail_in.rs", "CONVERSATIONS", "16", "16"),
        "the next one is closed; the mail server tries again",
    ),
    bound(
        "logbooks of one mail",
        Constant("hub/src/book/mail_in/session.rs", "RECIPIENTS", "20", "20"),
        "452, and the mail server sends the rest again",
    ),
    bound("files of one mail", Constant("hub/src/book/mail_in/entry.rs", "FILES", "50", "50"), "the mail is refused"),
    bound(
        "parts of one mail with a type of their own",
        Constant("hub/src/book/mail_in/shape.rs", "TYPED", "1000", "1000"),
        "the mail is refused",
    ),
    bound(
        "lines of one mail that can begin a part",
        Constant("hub/src/book/mail_in/shape.rs", "BOUNDARIES", "10_000", "10 000"),
        "the mail is refused",
    ),
    bound(
        "Markdown whose marks are left out in snippets",
        Constant("logbook/src/plain.rs", "MAX_READ", "32 << 10", "32 KiB"),
        "the snippet shows the source",
    ),
    bound(
        "Markdown whose checklist can be ticked off",
        Constant("logbook/src/checklist.rs", "MAX_TEXT", "256 << 10", "256 KiB"),
        "it has no boxes",
    ),
    bound(
        "logbooks whose mails a user gets by ELOG's list",
        Constant("logbook/src/people/user.rs", "MAX_NOTIFY", "4096", "4096"),
        "422",
    ),
    bound(
        "time for which a mail is known as an entry",
        Constant("hub/src/book/mail_in/entry.rs", "REMEMBERED", "30 * 86_400_000_000_000", "30 days"),
        "the same mail again is a new entry",
    ),
    bound("a lock", Constant("hub/src/api/drafts.rs", "LONGEST_LOCK", "24 * 3600", "24 h"), "400"),
];
