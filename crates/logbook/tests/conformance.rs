//! The conformance suite of stores. The suite is generic: a store has a line at the end.

#[path = "support/server.rs"]
mod server;
mod support;

#[path = "conformance/looks.rs"]
mod looks;
#[path = "conformance/naming.rs"]
mod naming;
#[path = "conformance/purging.rs"]
mod purging;
#[path = "conformance/quotas.rs"]
mod quotas;
#[path = "conformance/remembering.rs"]
mod remembering;
#[path = "conformance/searching.rs"]
mod searching;
#[path = "conformance/signing.rs"]
mod signing;
#[path = "conformance/together.rs"]
mod together;
#[path = "conformance/upkeep.rs"]
mod upkeep;
#[path = "conformance/writing.rs"]
mod writing;

use tampu_logbook::store::{Store, sqlite::SqliteStore};

use looks::*;
use naming::*;
use purging::*;
use quotas::*;
use remembering::*;
use searching::*;
use signing::signatures;
use together::*;
use upkeep::*;
use writing::*;

/// The suite for one store: `with` gives an empty one to a test.
macro_rules! conforms {
    ($store:ident, $with:expr $(, $ignored:meta)?) => {
        mod $store {
            use super::*;

            conforms!(@each ($with) ($($ignored)?) posting_and_editing threads_and_histories_have_pages attachments_are_found_by_name threads_deletion_and_moving copies_keep_their_ids_where_the_configuration_asks_for_it attachments two_people_and_one_entry
                drafts_and_saved_searches queries words_of_any_length_and_number
                more_entries_of_a_second_than_it_has_places pages_are_bounded_in_bytes pages_and_orders counts_do_not_depend_on_the_page threads_are_ordered_by_their_newest_entries an_abandoned_search_ends
                many_at_once checking_beside_writers importing what_is_not_taken_leaves_nothing records changes configurations_have_a_history
                backups several_posts_are_one several_changes_are_one tags_lines_and_computed_values a_lock_is_handed_on purges signatures books_get_other_names deleted_books_come_back quotas looks_are_counted_by_day remembered_searches_are_those_of_the_moment remembered_searches_beside_writers words_and_verdicts_are_remembered_until_entries_change the_report_has_its_numbers files_of_one_name_and_second_have_addresses_of_their_own);
        }
    };
    (@each ($with:expr) $ignored:tt $($name:ident)*) => {
        $(conforms!(@one ($with) $ignored $name);)*
    };
    (@one ($with:expr) ($($ignored:meta)?) $name:ident) => {
        #[test]
        $(#[$ignored])?
        fn $name() {
            $with(super::$name);
        }
    };
}

fn in_directory(test: impl FnOnce(&dyn Store)) {
    let dir = tempfile::tempdir().unwrap();
    test(&SqliteStore::open(dir.path()).unwrap());
}

fn in_database(test: impl FnOnce(&dyn Store)) {
    let server = server::server();
    test(&server.store());
}

conforms!(sqlite, in_directory);
conforms!(postgres, in_database, ignore = "needs PostgreSQL: make test-all");
