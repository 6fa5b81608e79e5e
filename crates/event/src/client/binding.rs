//! One subscription to one attribute in one life of its server: which events are new to it, and what is missing.
//!
//! A value: it is told what came and says what to tell. Events of an attribute are numbered from 1 in each life, so what is
//! missing is known exactly whatever else the stream carries.

use tampu_types::event::{Missed, Reason};

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until the current value comes that was asked for; what comes before is older.
    Waiting,
    /// From the first event on: the subscription was there before the attribute was in this life. Up to this number nothing was a reading.
    Fresh(u64),
    /// All up to this number has been told.
    Live(u64),
}

/// What to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Notice {
    pub reason: Reason,
    pub missed: Missed,
    /// Whether the kinds that were asked for decide if it is told.
    pub by_kind: bool,
}

#[derive(Debug)]
pub(super) struct Binding {
    state: State,
    /// It has told a value in an earlier life of the source, or before a silence.
    resumes: Option<Missed>,
    /// The current value was asked for and has not come.
    pub asked: bool,
    /// Whether it tells the first value.
    first: bool,
}

/// At most two things are told for one event: what is missing before it, and itself.
pub(super) type Notices = [Option<Notice>; 2];

const NOTHING: Notices = [None, None];

impl Binding {
    /// `again` says that an earlier life was bound; `before_it` that the subscription is older than the attribute is in this life.
    pub fn new(first: bool, again: bool, before_it: bool) -> Binding {
        Binding {
            state: if again || before_it { State::Fresh(0) } else { State::Waiting },
            resumes: again.then_some(Missed::Unknown),
            asked: false,
            first,
        }
    }

    /// The source was silent, and is heard again. Who has been told no value yet has nothing to resume.
    pub fn returned(&mut self) {
        if self.is_live() {
            self.resumes.get_or_insert(Missed::Nothing);
        }
    }

    /// Whether the stream's loss concerns it.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live(_))
    }

    /// Whether it waits for the current value.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// An event came.
    pub fn event(&mut self, number: u64) -> Notices {
        match self.state {
            State::Waiting => NOTHING,
            State::Fresh(last) => {
                self.state = State::Live(number);
                let missed = missed(last, number);
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
                let missed = missed(last, number);
                match self.resumes.take() {
                    Some(_) => [None, Some(Notice { reason: Reason::Resumed, missed, by_kind: false })],
                    None => [gap(missed), Some(Notice { reason: Reason::Update, missed: Missed::Nothing, by_kind: true })],
                }
            }
        }
    }

    /// An event came that is no reading: it is told for itself, and the first value is still to come.
    pub fn signal(&mut self, number: u64) -> Notices {
        let last = match &mut self.state {
            State::Waiting => return NOTHING,
            State::Fresh(last) | State::Live(last) => last,
        };
        if number <= *last {
            return NOTHING;
        }
        let missed = missed(*last, number);
        *last = number;
        [gap(missed), Some(Notice { reason: Reason::Update, missed: Missed::Nothing, by_kind: true })]
    }

    /// The current value came, because this process asked for it; `number` is that of the last event.
    pub fn current(&mut self, number: u64) -> Notices {
        self.asked = false;
        match self.state {
            State::Waiting | State::Fresh(_) if self.resumes.is_some() => {
                self.state = State::Live(number);
                let missed = self.resumes.take().unwrap_or_default();
                [None, Some(Notice { reason: Reason::Resumed, missed, by_kind: false })]
            }
            State::Waiting => {
                self.state = State::Live(number);
                [None, self.first.then_some(Notice { reason: Reason::First, missed: Missed::Nothing, by_kind: false })]
            }
            // The subscription was there before what this value stands behind, and has not got it.
            State::Fresh(last) if self.first => {
                self.state = State::Live(number);
                [None, Some(Notice { reason: Reason::First, missed: missed(last, number), by_kind: false })]
            }
            State::Fresh(last) => {
                self.state = State::Live(number);
                [gap(missed(last, number + 1)), None]
            }
            State::Live(last) if number > last => {
                self.state = State::Live(number);
                self.resumes = None;
                // The last of the events that are missing is the one whose value this is.
                let missed = Missed::Exactly(last + 1, number + 1);
                [gap(missed), Some(Notice { reason: Reason::Resumed, missed: Missed::Nothing, by_kind: false })]
            }
            State::Live(_) => {
                let notice = |missed| Notice { reason: Reason::Resumed, missed, by_kind: false };
                [None, self.resumes.take().map(notice)]
            }
        }
    }
}

/// What lies between two numbers.
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
        assert_eq!(told(binding.event(4)), []);
        assert_eq!(told(binding.current(7)), [(Reason::First, Missed::Nothing)]);
        assert_eq!(told(binding.event(7)), []);
        assert_eq!(told(binding.current(7)), []);
        assert_eq!(told(binding.event(8)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(binding.event(8)), []);
    }

    #[test]
    fn gaps_are_exact() {
        let mut binding = Binding::new(false, false, false);
        assert_eq!(told(binding.current(3)), [], "no first value was wanted");
        assert_eq!(told(binding.event(7)), [(Reason::Gap, Missed::Exactly(4, 7)), (Reason::Update, Missed::Nothing)]);
        assert_eq!(told(binding.current(9)), [(Reason::Gap, Missed::Exactly(8, 10)), (Reason::Resumed, Missed::Nothing)]);
    }

    #[test]
    fn another_life_is_told_from_its_first_event() {
        let mut binding = Binding::new(true, true, true);
        assert_eq!(told(binding.event(1)), [(Reason::Resumed, Missed::Unknown)]);
        assert_eq!(told(binding.event(2)), [(Reason::Update, Missed::Nothing)]);
        let mut early = Binding::new(true, false, true);
        assert_eq!(told(early.event(1)), [(Reason::First, Missed::Nothing)]);
        let mut late = Binding::new(true, false, true);
        assert_eq!(told(late.event(3)), [(Reason::First, Missed::Exactly(1, 3))]);
    }

    #[test]
    fn what_is_no_reading_is_not_taken_for_the_first_value() {
        let mut binding = Binding::new(true, true, true);
        assert_eq!(told(binding.signal(1)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(binding.signal(1)), []);
        assert_eq!(told(binding.event(2)), [(Reason::Resumed, Missed::Unknown)]);
        assert_eq!(told(binding.signal(4)), [(Reason::Gap, Missed::Exactly(3, 4)), (Reason::Update, Missed::Nothing)]);
        assert_eq!(told(Binding::new(true, false, false).signal(1)), []);
    }

    #[test]
    fn what_a_life_sent_before_its_first_value_came_is_missing_for_who_was_there() {
        let mut early = Binding::new(true, false, true);
        assert_eq!(told(early.current(5)), [(Reason::First, Missed::Exactly(1, 5))]);
        let mut nothing_yet = Binding::new(true, false, true);
        assert_eq!(told(nothing_yet.current(0)), [(Reason::First, Missed::Nothing)]);
        let mut without = Binding::new(false, false, true);
        assert_eq!(told(without.signal(1)), [(Reason::Update, Missed::Nothing)]);
        assert_eq!(told(without.current(5)), [(Reason::Gap, Missed::Exactly(2, 6))]);
        let mut again = Binding::new(true, true, true);
        assert_eq!(told(again.current(5)), [(Reason::Resumed, Missed::Unknown)]);
    }

    #[test]
    fn a_silence_before_the_first_value_leaves_it_the_first() {
        for mut binding in [Binding::new(true, false, false), Binding::new(true, false, true)] {
            binding.returned();
            assert_eq!(told(binding.current(0)), [(Reason::First, Missed::Nothing)]);
        }
        let mut fresh = Binding::new(true, false, true);
        fresh.returned();
        assert_eq!(told(fresh.event(1)), [(Reason::First, Missed::Nothing)]);
    }

    #[test]
    fn after_a_silence_the_next_word_is_told_as_resumed() {
        let mut binding = Binding::new(true, false, false);
        binding.current(5);
        binding.returned();
        assert_eq!(told(binding.current(5)), [(Reason::Resumed, Missed::Nothing)]);
        binding.returned();
        assert_eq!(told(binding.event(8)), [(Reason::Resumed, Missed::Exactly(6, 8))]);
        assert_eq!(told(binding.event(9)), [(Reason::Update, Missed::Nothing)]);
    }
}
