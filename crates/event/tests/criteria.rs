//! The criteria against a second statement of the rules, over thousands of random series.
//!
//! The statement here is written from the facts about Tango (with the differences `spec/events.md` lists), on purpose in
//! another style than the product: everything is a whole number of 1024ths, compared by multiplication in 128 bits; there is no
//! floating point in it and no division.

use proptest::{collection::vec, option, prelude::*, sample::select};
use tampu_event::criteria::{Detector, Reading};
use tampu_types::event::{Band, Criteria, DevState, Failure, Kinds, Quality, Shape, Thresholds, Value, Values};

/// A number of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    /// So many 1024ths.
    Finite(i128),
    Infinite {
        negative: bool,
    },
    Nan,
}

/// An end of a threshold, in 1024ths: `change <= low or change >= high`.
type Ends = (i128, i128);

/// One reading of a series.
#[derive(Debug, Clone)]
struct Step {
    /// The value, how it is arranged, and the same in the statement's terms.
    values: Values,
    shape: Shape,
    numbers: Vec<Number>,
    set_point: Option<(Values, Vec<Number>)>,
    quality: Quality,
    errors: Vec<Failure>,
    /// Since the one before, ms.
    pause: u64,
}

fn number_fires(before: Number, now: Number, rel: Option<Ends>, abs: Option<Ends>) -> bool {
    use Number::{Finite, Infinite, Nan};
    if rel.is_none() && abs.is_none() {
        return false;
    }
    let (before, now) = match (before, now) {
        (Nan, Nan) => return false,
        (Nan, _) | (_, Nan) => return true,
        (Infinite { negative: a }, Infinite { negative: b }) if a == b => (0, 0),
        (Infinite { .. }, _) | (_, Infinite { .. }) => return true,
        (Finite(before), Finite(now)) => (before, now),
    };
    let by_abs = abs.is_some_and(|(low, high)| now - before <= low || now - before >= high);
    // (now - before) * 100 / before against end / 1024, both sides times before * 1024.
    let by_rel = rel.is_some_and(|(low, high)| {
        if now == before {
            return low >= 0 || high <= 0;
        }
        if before == 0 {
            return 100 * 1024 >= high;
        }
        let (sign, size) = (before.signum(), before.abs());
        let left = (now - before) * 100 * 1024 * sign;
        left <= low * size || left >= high * size
    });
    by_abs || by_rel
}

#[derive(Clone, Copy, Default, Debug)]
struct Rules {
    rel: Option<Ends>,
    abs: Option<Ends>,
}

impl Rules {
    fn numbers(&self, before: &[Number], now: &[Number]) -> bool {
        before.len() != now.len() || before.iter().zip(now).any(|(&before, &now)| number_fires(before, now, self.rel, self.abs))
    }

    fn fires(&self, numeric: bool, before: Option<&Step>, now: &Step) -> bool {
        let Some(before) = before else { return true };
        match (before.errors.as_slice(), now.errors.as_slice()) {
            ([], []) => {}
            (old, new) => return old != new,
        }
        let invalid = |step: &Step| step.quality == Quality::Invalid;
        if invalid(before) && invalid(now) {
            return false;
        }
        if invalid(before) || invalid(now) || before.shape != now.shape || before.quality != now.quality {
            return true;
        }
        if !numeric {
            return before.values != now.values;
        }
        let set_point = match (&before.set_point, &now.set_point) {
            (None, None) => false,
            (Some((_, before)), Some((_, now))) => self.numbers(before, now),
            _ => true,
        };
        set_point || self.numbers(&before.numbers, &now.numbers)
    }
}

fn due(last: Option<u64>, now: u64, period: u64) -> bool {
    // Times in ms; the tolerance makes 98 hundredths of a short period.
    last.is_none_or(|last| if period < 5000 { (now - last) * 100 > period * 98 } else { now - last > period - 100 })
}

fn expected(
    numeric: bool,
    series: &[Step],
    change: Rules,
    archive: Rules,
    archive_period: Option<u64>,
    period: u64,
) -> Vec<Kinds> {
    let (mut changed, mut archived, mut alarmed): (Option<usize>, Option<usize>, Option<usize>) = (None, None, None);
    let (mut archive_at, mut periodic_at) = (None, None);
    let mut clock = 0;
    let mut all = Vec::new();
    for (index, step) in series.iter().enumerate() {
        clock += step.pause;
        let mut kinds = Kinds::NONE;
        if change.fires(numeric, changed.map(|at| &series[at]), step) {
            kinds |= Kinds::CHANGE;
            changed = Some(index);
        }
        let waited = archive_period.is_some_and(|period| due(archive_at, clock, period));
        if waited || archive.fires(numeric, archived.map(|at| &series[at]), step) {
            kinds |= Kinds::ARCHIVE;
            archived = Some(index);
            archive_at = Some(clock);
        }
        if due(periodic_at, clock, period) {
            kinds |= Kinds::PERIODIC;
            periodic_at = Some(clock);
        }
        let bad = |quality| quality == Quality::Alarm || quality == Quality::Warning;
        let alarm = alarmed.map(|at| &series[at]).is_none_or(|before| {
            let quality = before.quality != step.quality && (bad(before.quality) || bad(step.quality));
            before.errors != step.errors || step.errors.is_empty() && quality
        });
        if alarm {
            kinds |= Kinds::ALARM;
            alarmed = Some(index);
        }
        all.push(kinds);
    }
    all
}

fn observed(series: &[Step], criteria: &Criteria) -> Vec<Kinds> {
    let mut detector = Detector::default();
    let mut clock = 7_000_000_000;
    let judge = |step: &Step| {
        clock += step.pause * 1_000_000;
        let readable = step.errors.is_empty() && step.quality != Quality::Invalid;
        let reading = Reading {
            value: readable.then(|| Value { data: step.values.as_data(), shape: step.shape }),
            set_point: step.set_point.as_ref().filter(|_| readable).map(|(values, _)| values.as_data()),
            quality: step.quality,
            errors: &step.errors,
        };
        detector.judge(criteria, &reading, clock)
    };
    series.iter().map(judge).collect()
}

/// Type of a series.
#[derive(Debug, Clone, Copy)]
enum Type {
    Double,
    Float,
    Long,
    UChar,
    Long64,
    ULong64,
    Text,
    State,
    Boolean,
}

impl Type {
    fn numeric(self) -> bool {
        !matches!(self, Type::Text | Type::State | Type::Boolean)
    }
}

/// Numbers of a type, and the same in 1024ths.
fn numbers(kind: Type) -> BoxedStrategy<(Values, Vec<Number>)> {
    let scaled = |whole: i128| Number::Finite(whole * 1024);
    let count = 0..4usize;
    // Small steps around a few bases, so that values are just above or just below the thresholds.
    let float = prop_oneof![
        12 => (select(vec![0i64, 1024, -1024, 102_400, -51_200]), -3000i64..3000).prop_map(|(base, step)| Number::Finite((base + step).into())),
        1 => Just(Number::Nan),
        1 => any::<bool>().prop_map(|negative| Number::Infinite { negative }),
    ];
    let to_f64 = |number: &Number| match *number {
        Number::Finite(parts) => parts as f64 / 1024.0,
        Number::Infinite { negative: true } => f64::NEG_INFINITY,
        Number::Infinite { negative: false } => f64::INFINITY,
        Number::Nan => f64::NAN,
    };
    let about = |low: i128, high: i128, bases: Vec<i128>| {
        (select(bases), -60i128..60, any::<bool>())
            .prop_map(move |(base, step, far)| (base + if far { step * 7 } else { step }).clamp(low, high))
    };
    match kind {
        Type::Double => vec(float, count).prop_map(move |all| (Values::Double(all.iter().map(to_f64).collect()), all)).boxed(),
        Type::Float => vec(float, count)
            .prop_map(move |all| (Values::Float(all.iter().map(|one| to_f64(one) as f32).collect()), all))
            .boxed(),
        Type::Long => vec(
            about(i32::MIN.into(), i32::MAX.into(), vec![0, 1000, -1000, 1_073_741_824, i32::MIN.into(), i32::MAX.into()]),
            count,
        )
        .prop_map(move |all| (Values::Long(all.iter().map(|&one| one as i32).collect()), all.into_iter().map(scaled).collect()))
        .boxed(),
        Type::UChar => vec(about(0, 255, vec![0, 100, 255]), count)
            .prop_map(move |all| {
                (Values::UChar(all.iter().map(|&one| one as u8).collect()), all.into_iter().map(scaled).collect())
            })
            .boxed(),
        Type::Long64 => {
            vec(about(i64::MIN.into(), i64::MAX.into(), vec![0, 1000, i64::MIN.into(), i64::MAX.into(), 1 << 60]), count)
                .prop_map(move |all| {
                    (Values::Long64(all.iter().map(|&one| one as i64).collect()), all.into_iter().map(scaled).collect())
                })
                .boxed()
        }
        Type::ULong64 => vec(about(0, u64::MAX.into(), vec![0, 1000, u64::MAX.into(), 1 << 63]), count)
            .prop_map(move |all| {
                (Values::ULong64(all.iter().map(|&one| one as u64).collect()), all.into_iter().map(scaled).collect())
            })
            .boxed(),
        Type::Text => vec("[ab]{0,2}", count).prop_map(|all| (Values::String(all), Vec::new())).boxed(),
        Type::State => vec((0..3u8).prop_map(DevState::read), count).prop_map(|all| (Values::State(all), Vec::new())).boxed(),
        Type::Boolean => vec(any::<bool>(), count).prop_map(|all| (Values::Boolean(all), Vec::new())).boxed(),
    }
}

prop_compose! {
    fn steps(kind: Type)(
        (values, numbers) in numbers(kind),
        set_point in option::weighted(0.2, numbers(kind)),
        quality in select(vec![Quality::Valid; 4].into_iter().chain(Quality::ALL).collect::<Vec<_>>()),
        error in select(vec![0, 0, 0, 0, 0, 1, 2]),
        pause in select(vec![0u64, 10, 97, 98, 99, 490, 980, 981, 1000, 4900, 5000, 9901]),
        image in any::<bool>(),
    ) -> Step {
        let errors = if error == 0 { Vec::new() } else { vec![Failure::new(format!("E{error}"), "")] };
        let readable = errors.is_empty() && quality != Quality::Invalid;
        let count = values.as_data().len() as u32;
        let shape = if image && count == 2 { Shape::image(1, 2) } else { Shape::spectrum(count) };
        // Booleans and other types without numbers have no set point here: the value's rule applies.
        let set_point = set_point.filter(|_| readable && kind.numeric());
        Step { values, shape, numbers, set_point, quality, errors, pause }
    }
}

fn series() -> impl Strategy<Value = (Type, Vec<Step>)> {
    let kinds =
        [Type::Double, Type::Float, Type::Long, Type::UChar, Type::Long64, Type::ULong64, Type::Text, Type::State, Type::Boolean];
    select(kinds.to_vec()).prop_flat_map(|kind| {
        // Long runs of small differences, interrupted by other changes.
        (Just(kind), vec(steps(kind), 1..30))
    })
}

prop_compose! {
    fn ends()(low in select(vec![0i128, 1, 512, 1024, 5 * 1024, 614, 100 * 1024, 204_800]), high in select(vec![0i128, 1, 512, 1024, 3 * 1024, 615, 100 * 1024, 1 << 40])) -> Ends {
        (-low, high)
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    (option::of(ends()), option::of(ends())).prop_map(|(rel, abs)| Rules { rel, abs })
}

fn thresholds(rules: Rules) -> Thresholds {
    let band = |(low, high): Ends| Band::new(low as f64 / 1024.0, high as f64 / 1024.0).unwrap();
    Thresholds { rel: rules.rel.map(band), abs: rules.abs.map(band) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, ..ProptestConfig::default() })]

    #[test]
    fn criteria_are_what_the_facts_say(
        (kind, series) in series(),
        change in rules(),
        archive in rules(),
        archive_period in option::of(select(vec![100u64, 500, 1000, 5000, 10_000])),
        period in select(vec![100u64, 1000, 5000]),
    ) {
        let criteria = Criteria {
            change: thresholds(change),
            archive: thresholds(archive),
            archive_period_ms: archive_period,
            period_ms: period,
        };
        let expected = expected(kind.numeric(), &series, change, archive, archive_period, period);
        prop_assert_eq!(observed(&series, &criteria), expected, "{:?}", series);
    }
}

fn judged(criteria: &Criteria, values: &[Value<'_>]) -> Vec<bool> {
    let mut detector = Detector::default();
    values.iter().map(|&value| detector.judge(criteria, &Reading::of(value), 0).intersects(Kinds::CHANGE)).collect()
}

fn by(rel: Option<&str>, abs: Option<&str>) -> Criteria {
    let band = |text: &str| text.parse().unwrap();
    Criteria { change: Thresholds { rel: rel.map(band), abs: abs.map(band) }, ..Criteria::default() }
}

#[test]
fn tango_s_defects_are_not_here() {
    assert_eq!(judged(&by(Some("0.5"), None), &[Value::scalar(&1000i32), Value::scalar(&1006i32)]), [true, true]);
    assert_eq!(judged(&by(Some("0.5"), None), &[Value::scalar(&1000i32), Value::scalar(&1004i32)]), [true, false]);
    assert_eq!(judged(&by(Some("1"), None), &[Value::scalar(&1_073_741_824i32), Value::scalar(&0i32)]), [true, true]);
    assert_eq!(judged(&by(None, Some("1")), &[Value::scalar(&i64::MIN), Value::scalar(&i64::MAX)]), [true, true]);
    assert_eq!(judged(&by(None, Some("0.5")), &[Value::scalar(&u64::MAX), Value::scalar(&(u64::MAX - 1))]), [true, true]);
}

#[test]
fn floating_point_at_its_ends() {
    let check = |rel: Option<&str>, abs: Option<&str>, before: f64, now: f64, fires: bool| {
        assert_eq!(judged(&by(rel, abs), &[Value::scalar(&before), Value::scalar(&now)]), [true, fires], "{before} to {now}");
    };
    check(None, Some("0.1"), 0.3, 0.4, true);
    check(None, Some("0.1"), 1.1, 1.2, true);
    check(Some("50"), None, 0.0, 1e-300, true);
    check(Some("200"), None, 0.0, 1e300, false);
    check(Some("1"), None, 1e308, 1.005e308, false);
    check(Some("2000"), None, 1e307, 1.7e308, false);
    check(Some("1600"), None, 1e307, 1.71e308, true);
    check(None, Some("1"), -1e308, 1e308, true);
    check(None, Some("1"), f64::INFINITY, f64::INFINITY, false);
    check(Some("1"), None, f64::INFINITY, 5.0, true);
    check(Some("1"), None, f64::INFINITY, f64::NEG_INFINITY, true);
    check(Some("1"), None, f64::NAN, f64::NAN, false);
    check(Some("1"), None, 0.0, -0.0, false);
    check(None, None, 0.0, 5.0, false);
}

#[test]
fn criteria_can_change_while_it_runs() {
    let mut detector = Detector::default();
    let mut judge = |criteria: &Criteria, number: f64| {
        detector.judge(criteria, &Reading::of(Value::scalar(&number)), 0).intersects(Kinds::CHANGE)
    };
    let (wide, narrow) = (by(None, Some("10")), by(None, Some("1")));
    assert!(judge(&wide, 0.0));
    assert!(!judge(&wide, 5.0));
    assert!(judge(&narrow, 5.0), "against what was sent, not what was seen");
    assert!(!judge(&wide, 14.0));
    assert!(judge(&wide, 15.0));
}

#[test]
fn what_somebody_else_sent_counts_as_sent() {
    let mut detector = Detector::default();
    let criteria = by(None, Some("1"));
    detector.sent(Kinds::CHANGE | Kinds::ARCHIVE, &Reading::of(Value::scalar(&5.0)), 0);
    assert!(!detector.judge(&criteria, &Reading::of(Value::scalar(&5.5)), 0).intersects(Kinds::CHANGE | Kinds::ARCHIVE));
}
