//! The binding of one subscription to one attribute in one incarnation of its server. It decides which events are new
//! and which are missing.
//!
//! It is a value: it gets events and returns notices. The events of an attribute are numbered from 1 in each
//! incarnation. So the missing ones are known exactly, also in a stream shared with other attributes.

use tampu_types::event::{Missed, Reason};

/// Progress of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for the requested current value; earlier events are older than it.
    Waiting,
    /// As `Waiting`, until it is known whether the subscription is older than the attribute.
    Undecided,
    /// Delivers from the first event on, because the subscription is older than the attribute in this incarnation. No
    /// event up to this number was a reading.
    Fresh(u64),
    /// Has delivered all events up to this number.
    Live(u64),
}

/// One notice to the subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Notice {
    pub reason: Reason,
    pub missed: Missed,
    /// True if it is delivered only to a subscriber that wants the event's kinds.
    pub by_kind: bool,
}

#[derive(Debug)]
pub(super) struct Binding {
    state: State,
    /// Events missed since a value of an earlier incarnation of the source, or before a silence.
    resumes: Option<Missed>,
    /// True if the current value was requested and has not arrived.
    pub asked: bool,
    /// True if the first value is delivered.
    first: bool,
}

/// Most notices for one event: the events missing before it, and the event.
pub(super) type Notices = [Option<Notice>; 2];

const NOTHING: Notices = [None, None];

impl Binding {
    /// Makes a binding. With `again`, the subscription was bound to an earlier incarnation. With `before_it`, it is
    /// older than the attribute in this incarnation.
    pub fn new(first: bool, again: bool, before_it: bool) -> Binding {
        Binding {
            state: if again || before_it { State::Fresh(0) } else { State::Waiting },
            resumes: again.then_some(Missed::Unknown),
            asked: false,
            first,
        }
    }

    /// Makes a binding of which [`Binding::decide`] will tell whether it is older than the attribute.
    pub fn undecided(first: bool) -> Binding {
        Binding { state: State::Undecided, resumes: None, asked: false, first }
    }

    /// Notes whether the subscription is older than the attribute, if that was not known yet.
    pub fn decide(&mut self, is_older: bool) {
        if self.state == State::Undecided {
            self.state = if is_older { State::Fresh(0) } else { State::Waiting };
        }
    }

    /// Makes the binding to an incarnation that counted as dead and is back, of which all events up to this number were
    /// delivered.
    pub fn again(first: bool, last: u64) -> Binding {
        Binding { state: State::Live(last), resumes: Some(Missed::Nothing), asked: false, first }
    }

    /// Returns the number of the last delivered event, if a value was delivered.
    pub fn last(&self) -> Option<u64> {
        if let State::Live(last) = self.state { Some(last) } else { None }
    }

    /// Handles the return of a silent source. A subscriber without a value yet has nothing to resume.
    pub fn returned(&mut self) {
        if self.is_live() {
            self.resumes.get_or_insert(Missed::Nothing);
        }
    }

    /// Returns whether a loss in the stream may concern this binding.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live(_))
    }

    /// Returns whether the current value has yet to arrive.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting | State::Undecided)
    }

    /// Returns whether every event from the first on is wanted, as the subscription may be older than the attribute.
    pub fn is_fresh(&self) -> bool {
        matches!(self.state, State::Fresh(_) | State::Undecided)
    }

    /// Handles an event with a reading. `left_out` is the number of events directly before it that are not in the stream.
    pub fn event(&mut self, number: u64, left_out: u64) -> Notices {
        match self.state {
            State::Waiting | State::Undecided => NOTHING,
            State::Fresh(last) => {
                self.state = State::Live(number);
                let missed = missed(last, number.saturating_sub(left_out));
                match self.resumes.take() {
                    Some(_) => [None, Some(Notice { reason: Reason::Resumed, missed: Missed::Unknown, by_kind: false })],
                    None if self.first => [None, Some(Notice { reason: Reason::First, missed, by_kind: false })],
                    None => [gap(missed), Some(Notice { reason: Reason::Update, missed: Missed::Nothing, by_kind: true })],
                }
            }
            State::Live(last) if number <= last => NOTHING,
            State::Live(last) => {
                self.state = State::Live(number);
                // It says more than the current value that may have been asked for after a loss.
                self.asked = false;
                let missed = missed(last, number.saturating_sub(left_out));
                match self.resumes.take() {
                    Some(_) => [None, Some(Notice { reason: Reason::Resumed, missed, by_kind: false })],
                    None => [gap(missed), Some(Notice { reason: Reason::Update, missed: Missed::Nothing, by_kind: true })],
                }
            }
        }
    }

    /// Handles an event without a reading. It is delivered, and the first value has yet to arrive.
    pub fn signal(&mut self, number: u64, left_out: u64) -> Notices {
        let last = match &mut self.state {
            State::Waiting | State::Undecided => return NOTHING,
            State::Fresh(last) | State::Live(last) => last,
        };
        if number <= *last {
            return NOTHING;
        }
        let missed = missed(*last, number.saturating_sub(left_out));
        *last = number;
        [gap(missed), Some(Notice { reason: Reason::Update, missed: Missed::Nothing, by_kind: true })]
    }

    /// Handles the current value that this process requested; `number` is that of the last event, and the last `left_out`
    /// events up to it are not in the stream. With `filtered`, the server judges events by this subscription's filter. Then
    /// every current value is delivered: the server compares the next ones with it.
    pub fn current(&mut self, number: u64, left_out: u64, filtered: bool) -> Notices {
        self.asked = false;
        let sent = number.saturating_sub(left_out);
        match self.state {
            State::Waiting | State::Undecided | State::Fresh(_) if self.resumes.is_some() => {
                self.state = State::Live(number);
                let missed = self.resumes.take().unwrap_or_default();
                [None, Some(Notice { reason: Reason::Resumed, missed, by_kind: false })]
            }
            State::Waiting | State::Undecided => {
                self.state = State::Live(number);
                [None, self.first.then_some(Notice { reason: Reason::First, missed: Missed::Nothing, by_kind: false })]
            }
            // The subscription is older than the events behind this value, and did not get them.
            State::Fresh(last) if self.first => {
                self.state = State::Live(number);
                [None, Some(Notice { reason: Reason::First, missed: missed(last, number.min(sent + 1)), by_kind: false })]
            }
            State::Fresh(last) => {
                self.state = State::Live(number);
                [gap(missed(last, sent + 1)), None]
            }
            State::Live(last) if sent > last => {
                self.state = State::Live(number);
                self.resumes = None;
                // The last of the events that are missing is the one whose value this is.
                [gap(missed(last, sent + 1)), Some(Notice { reason: Reason::Resumed, missed: Missed::Nothing, by_kind: false })]
            }
            State::Live(last) => {
                self.state = State::Live(number.max(last));
                if filtered && number > 0 {
                    self.resumes.get_or_insert(Missed::Nothing);
                }
                let notice = |missed| Notice { reason: Reason::Resumed, missed, by_kind: false };
                [None, self.resumes.take().map(notice)]
            }
        }
    }
}

/// Returns the numbers between two events.
fn missed(last: u64, number: u64) -> Missed {
    if number > last + 1 { Missed::Exactly(last + 1, number) } else { Missed::Nothing }
}

fn gap(missed: Missed) -> Option<Notice> {
    (missed != Missed::Nothing).then_some(Notice { reason: Reason::Gap, missed, by_kind: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(notices: Notices) -> Vec<(Reason, Missed)> {
        notices.into_iter().flatten().map(|notice| (notice.reason, notice.missed)).collect()
    }

    #[test]
    fn what_is_older_than_the_first_value_is_not_told_and_nothing_twice() {
        let mut binding = Binding::new(true, false, false);
        assert_eq!(told(binding.event(4, 0)), []);
        assert_eq!(told(binding.current(7, 0, false)), [(Reason::First, Missed::Nothing)]);
        assert_eq!(told(binding.event(7, 0)), []);
        assert_eq!(told(binding.current(7, 0, false)), []);
        assert_eq!(told(binding.event(8, 0)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(binding.event(8, 0)), []);
    }

    #[test]
    fn gaps_are_exact() {
        let mut binding = Binding::new(false, false, false);
        assert_eq!(told(binding.current(3, 0, false)), [], "no first value was wanted");
        assert_eq!(told(binding.event(7, 0)), [(Reason::Gap, Missed::Exactly(4, 7)), (Reason::Update, Missed::Nothing)]);
        assert_eq!(
            told(binding.current(9, 0, false)),
            [(Reason::Gap, Missed::Exactly(8, 10)), (Reason::Resumed, Missed::Nothing)]
        );
    }

    #[test]
    fn another_life_is_told_from_its_first_event() {
        let mut binding = Binding::new(true, true, true);
        assert_eq!(told(binding.event(1, 0)), [(Reason::Resumed, Missed::Unknown)]);
        assert_eq!(told(binding.event(2, 0)), [(Reason::Update, Missed::Nothing)]);
        let mut early = Binding::new(true, false, true);
        assert_eq!(told(early.event(1, 0)), [(Reason::First, Missed::Nothing)]);
        let mut late = Binding::new(true, false, true);
        assert_eq!(told(late.event(3, 0)), [(Reason::First, Missed::Exactly(1, 3))]);
    }

    #[test]
    fn what_is_no_reading_is_not_taken_for_the_first_value() {
        let mut binding = Binding::new(true, true, true);
        assert_eq!(told(binding.signal(1, 0)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(binding.signal(1, 0)), []);
        assert_eq!(told(binding.event(2, 0)), [(Reason::Resumed, Missed::Unknown)]);
        assert_eq!(told(binding.signal(4, 0)), [(Reason::Gap, Missed::Exactly(3, 4)), (Reason::Update, Missed::Nothing)]);
        assert_eq!(told(Binding::new(true, false, false).signal(1, 0)), []);
    }

    #[test]
    fn what_a_life_sent_before_its_first_value_came_is_missing_for_who_was_there() {
        let mut early = Binding::new(true, false, true);
        assert_eq!(told(early.current(5, 0, false)), [(Reason::First, Missed::Exactly(1, 5))]);
        let mut nothing_yet = Binding::new(true, false, true);
        assert_eq!(told(nothing_yet.current(0, 0, false)), [(Reason::First, Missed::Nothing)]);
        let mut without = Binding::new(false, false, true);
        assert_eq!(told(without.signal(1, 0)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(without.current(5, 0, false)), [(Reason::Gap, Missed::Exactly(2, 6))]);
        let mut again = Binding::new(true, true, true);
        assert_eq!(told(again.current(5, 0, false)), [(Reason::Resumed, Missed::Unknown)]);
    }

    #[test]
    fn a_silence_before_the_first_value_leaves_it_the_first() {
        for mut binding in [Binding::new(true, false, false), Binding::new(true, false, true)] {
            binding.returned();
            assert_eq!(told(binding.current(0, 0, false)), [(Reason::First, Missed::Nothing)]);
        }
        let mut fresh = Binding::new(true, false, true);
        fresh.returned();
        assert_eq!(told(fresh.event(1, 0)), [(Reason::First, Missed::Nothing)]);
    }

    #[test]
    fn after_a_silence_the_next_word_is_told_as_resumed() {
        let mut binding = Binding::new(true, false, false);
        binding.current(5, 0, false);
        binding.returned();
        assert_eq!(told(binding.current(5, 0, false)), [(Reason::Resumed, Missed::Nothing)]);
        binding.returned();
        assert_eq!(told(binding.event(8, 0)), [(Reason::Resumed, Missed::Exactly(6, 8))]);
        assert_eq!(told(binding.event(9, 0)), [(Reason::Update, Missed::Nothing)]);
    }

    #[test]
    fn events_before_the_decision_are_given_again_to_a_subscription_that_is_older() {
        let mut older = Binding::undecided(true);
        assert_eq!(told(older.event(1, 0)), []);
        assert!(older.is_waiting() && older.is_fresh());
        older.decide(true);
        assert_eq!(told(older.event(1, 0)), [(Reason::First, Missed::Nothing)]);
        older.decide(false);
        assert_eq!(told(older.current(3, 0, false)).first(), Some(&(Reason::Gap, Missed::Exactly(2, 4))));
        let mut younger = Binding::undecided(true);
        younger.decide(false);
        assert_eq!(told(younger.event(789, 0)), []);
        assert_eq!(told(younger.current(790, 0, false)), [(Reason::First, Missed::Nothing)]);
    }

    #[test]
    fn of_a_life_that_was_taken_for_dead_the_missing_events_are_known() {
        let mut binding = Binding::new(true, false, false);
        assert_eq!(binding.last(), None);
        binding.current(5, 0, false);
        assert_eq!(binding.last(), Some(5));
        let mut again = Binding::again(true, 5);
        assert_eq!(told(again.event(8, 0)), [(Reason::Resumed, Missed::Exactly(6, 8))]);
        assert_eq!(told(Binding::again(true, 5).current(5, 0, false)), [(Reason::Resumed, Missed::Nothing)]);
        let mut later = Binding::again(true, 5);
        assert_eq!(told(later.current(7, 0, false)), [(Reason::Gap, Missed::Exactly(6, 8)), (Reason::Resumed, Missed::Nothing)]);
    }

    #[test]
    fn what_the_stream_leaves_out_is_not_missing() {
        let mut binding = Binding::new(true, false, false);
        assert_eq!(told(binding.current(7, 3, false)), [(Reason::First, Missed::Nothing)]);
        assert_eq!(told(binding.event(10, 5)), [(Reason::Update, Missed::Nothing)], "5 to 9 were left out");
        let gap = (Reason::Gap, Missed::Exactly(11, 13));
        assert_eq!(told(binding.event(15, 2)), [gap, (Reason::Update, Missed::Nothing)], "11 and 12 were lost");
        assert_eq!(told(binding.signal(19, 3)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(binding.current(22, 3, false)), [], "nothing was lost, and the value is not wanted");
        assert_eq!(told(binding.event(24, 4)), [(Reason::Update, Missed::Nothing)]);
        let (gap, resumed) = ((Reason::Gap, Missed::Exactly(25, 28)), (Reason::Resumed, Missed::Nothing));
        assert_eq!(told(binding.current(29, 2, false)), [gap, resumed]);
        assert_eq!(told(binding.current(31, 2, true)), [resumed], "the server's filter begins with this value");
        let mut early = Binding::new(true, false, true);
        assert_eq!(told(early.current(5, 2, false)), [(Reason::First, Missed::Exactly(1, 4))]);
    }
}
