//! The conformance suite: what the bus promises, whatever engine carries it.
//!
//! A case is a function over an [`Arena`](arena::Arena): it starts processes, tells them what to do ([`command`]), lets time
//! pass and reads what their applications were given ([`log`]). In memory the processes live in the test and time is
//! simulated; elsewhere they are child processes that really stop and die. An engine joins the suite with an arena of its own
//! and one line, `conformance!(ItsArena)`.

// The test program of each engine uses only a part of this module.
#![allow(dead_code)]

pub mod arena;
pub mod cases;
pub mod command;
pub mod log;
pub mod member;
#[cfg(feature = "zenoh")]
pub mod processes;
pub mod simulated;

/// Plays the cases in an arena, one test each; `with faults` also those that need messages lost and hosts cut.
#[allow(unused_macros)]
macro_rules! conformance {
    ($arena:ident: $($module:ident { $($case:ident)* })*) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                crate::conformance::cases::$module::$case::<crate::$arena>();
            })*
        })*
    };
    ($arena:ident with faults) => {
        conformance!($arena);
        mod faults {
            conformance! { $arena:
            order {
                losses_repetitions_and_reorderings_are_healed
                a_lost_tail_is_healed_within_two_heartbeats
                a_gap_is_exact_and_its_tail_told_within_two_heartbeats
                a_clock_that_jumps_changes_no_order
                a_reader_that_does_not_heal_is_told_its_losses_tail_included
            }
            life {
                a_cut_is_told_and_healed_without_loss
                a_reader_that_lacks_nothing_is_live_again_after_a_cut
                a_death_on_another_host_is_told_by_its_node
                samples_that_died_with_their_writer_are_told_lost
            }
            history {
                history_is_whole_under_losses
            }
            loans {
                loans_for_another_host_are_copied_and_counted
            }
            sharing {
                batches_for_another_host_are_sent
            }
            }
        }
    };
    ($arena:ident) => {
        conformance! { $arena:
            order {
                every_stream_arrives_whole_and_in_order
                samples_of_any_size_arrive
                urgent_samples_do_not_wait_and_keep_their_place
            }
            bounds {
                an_idle_application_costs_its_writer_the_bound_and_the_others_nothing
                two_idle_applications_cost_no_more_than_one
                a_slow_application_gets_everything_and_holds_nobody_back
                a_writer_that_may_wait_loses_nothing_whatever_its_cache
                laggards_are_served_from_the_cache
                beyond_the_cache_the_loss_is_exact
                a_reader_of_full_hold_slows_its_writer_and_loses_nothing
                the_cache_keeps_within_its_bound
            }
            life {
                a_stopped_reader_costs_the_bound_and_is_served_afterwards
                a_stopped_reader_loses_exactly_what_the_cache_could_not_keep
                a_killed_reader_is_let_go
                the_death_of_a_writer_is_told_at_once
                a_hang_is_told_and_so_is_the_return
                a_restarted_writer_is_no_gap
                who_leaves_says_so
            }
            receipts {
                deliveries_are_told_as_readers_acknowledge
                a_receipt_says_what_was_delivered
                a_receipt_says_what_is_cached_and_what_is_lost
                a_write_nobody_can_receive_says_so
                a_writer_sees_its_readers_matched_lagging_and_lost
                what_was_not_acknowledged_is_given_again_to_the_next_life
            }
            history {
                a_late_reader_gets_no_history_unless_it_asks
                a_late_reader_gets_the_last_samples
                a_late_reader_gets_all_that_is_kept
                a_process_that_writes_and_leaves_at_once_is_read_by_all_that_were_there
            }
            names {
                topics_fall_under_patterns
                a_sample_for_several_audiences_reaches_each_reader_once
                two_domains_never_mix
                qos_comes_from_the_configuration_of_the_topic
            }
            asking {
                everybody_who_answers_is_heard
                nobody_answering_is_told_in_time
                a_long_answer_arrives_whole
            }
            presence {
                who_is_here_is_known_to_everybody
            }
            loans {
                loans_are_read_where_they_were_written
                loans_used_again_are_told_torn_never_damaged
            }
            sharing {
                long_batches_are_shared_on_one_host
                who_finds_shared_batches_overwritten_fetches_them
                who_does_not_heal_takes_the_newest_from_the_board_and_is_not_waited_for
            }
            direct {
                direct_links_carry_each_sample_once
            }
        }
    };
}
