//! Tests of the encoding: every written value is read again. Bytes that are cut or changed are an error or another
//! value, never a panic.

use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::{
    Time,
    event::{data::*, sample::*, view::*},
};

fn values() -> impl Strategy<Value = Values> {
    // Numbers by their bits, so that every NaN is among them.
    prop_oneof![
        vec(any::<bool>(), 0..9).prop_map(Values::Boolean),
        vec(any::<u8>(), 0..9).prop_map(Values::UChar),
        vec(any::<i16>(), 0..9).prop_map(Values::Short),
        vec(any::<u16>(), 0..9).prop_map(Values::UShort),
        vec(any::<i32>(), 0..9).prop_map(Values::Long),
        vec(any::<u32>(), 0..9).prop_map(Values::ULong),
        vec(any::<i64>(), 0..9).prop_map(Values::Long64),
        vec(any::<u64>(), 0..9).prop_map(Values::ULong64),
        vec(any::<f32>(), 0..9).prop_map(Values::Float),
        vec(any::<f64>(), 0..9).prop_map(Values::Double),
        vec("\\PC{0,9}", 0..5).prop_map(Values::String),
        vec((0..14u8).prop_map(DevState::read), 0..9).prop_map(Values::State),
        ("\\PC{0,9}", vec(any::<u8>(), 0..30)).prop_map(|(format, data)| Values::Encoded { format, data }),
        vec(any::<i16>(), 0..9).prop_map(Values::Enum),
    ]
}

fn failures() -> impl Strategy<Value = Vec<Failure>> {
    let failure = ("\\PC{0,9}", "\\PC{0,20}", "\\PC{0,9}", 0..3u8).prop_map(|(reason, description, origin, severity)| Failure {
        reason,
        description,
        origin,
        severity: Severity::from_number(severity),
    });
    vec(failure, 0..4)
}

fn shape_of(values: &Values, image: bool) -> Shape {
    let count = values.as_data().len() as u32;
    match values {
        Values::Encoded { .. } => Shape::SCALAR,
        _ if count == 1 => Shape::SCALAR,
        _ if image && count.is_multiple_of(2) => Shape::image(count / 2, 2),
        _ => Shape::spectrum(count),
    }
}

prop_compose! {
    fn events()(
        (attribute, epoch, time, number, kinds) in any::<(u32, u32, i64, u64, u32)>(),
        quality in 0..5u8,
        flags in any::<u8>(),
        value in option::of(values()),
        image in any::<bool>(),
        set_point in option::of(values()),
        errors in failures(),
        token in option::of(any::<u64>()),
        (name, left_out, age) in ("\\PC{0,9}", prop_oneof![Just(0), any::<u64>()], prop_oneof![Just(0), any::<u64>()]),
        unknown in vec(any::<u8>(), 0..3),
    ) -> OwnedEvent {
        OwnedEvent {
            attribute,
            epoch,
            time: Time(time),
            number,
            kinds: Kinds(kinds),
            quality: Quality::from_number(quality),
            flags,
            shape: value.as_ref().map_or(Shape::NOTHING, |value| shape_of(value, image)),
            value,
            set_point,
            errors,
            token,
            name,
            left_out,
            age,
            unknown: unknown.iter().flat_map(|&byte| [byte; 4]).collect(),
        }
    }
}

fn encoded(event: &OwnedEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.encode(&mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn events_lead_back(event in events()) {
        let bytes = encoded(&event);
        prop_assert_eq!(bytes.len() % 4, 0);
        let view = EventView::parse(&bytes).unwrap();
        let routing = Routing::of(&bytes).unwrap();
        prop_assert_eq!((routing.attribute, routing.number), (event.attribute, event.number));
        prop_assert_eq!((routing.kinds, routing.flags), (event.kinds, event.flags));
        // By their bytes, because NaN is not equal to itself.
        let back = view.to_event();
        prop_assert_eq!(encoded(&back), bytes);
        prop_assert_eq!(format!("{back:?}"), format!("{event:?}"));
    }

    #[test]
    fn what_is_cut_is_an_error(event in events(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&event);
        let cut = cut.index(bytes.len());
        prop_assert!(EventView::parse(&bytes[..cut]).is_err());
    }

    #[test]
    fn elements_are_read_in_place_where_the_sample_lies_right(numbers in vec(any::<f64>(), 0..50), shift in 0usize..8) {
        let mut bytes = Vec::new();
        EventSample::of(1, Value::spectrum(&numbers)).encode(&mut bytes).unwrap();
        // Shifted in memory that begins at a multiple of 8.
        let mut words = vec![0u64; bytes.len() / 8 + 2];
        let memory = zerocopy::IntoBytes::as_mut_bytes(&mut words[..]);
        memory[shift..shift + bytes.len()].copy_from_slice(&bytes);
        let view = EventView::parse(&memory[shift..shift + bytes.len()]).unwrap();
        let Some(ValueView::Double(elements)) = view.value else { panic!("{view:?}") };
        let bits = |all: &[f64]| all.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&elements.to_vec()), bits(&numbers));
        prop_assert_eq!(elements.as_slice().is_some(), shift == 0);
        prop_assert_eq!(elements.get(numbers.len()), None);
    }

    #[test]
    fn a_loan_filled_in_place_is_the_same_sample(numbers in vec(any::<i32>(), 0..50), number in any::<u64>()) {
        let mut bytes = Vec::new();
        let event = EventSample { number, kinds: Kinds::USER, ..EventSample::of(9, Value::spectrum(&numbers)) };
        event.encode(&mut bytes).unwrap();
        let mut loan = vec![0xaa; len_around(4 * numbers.len())];
        event.encode_around(&mut loan, DataType::Long, Shape::spectrum(numbers.len() as u32)).unwrap();
        for (place, number) in loan[ELEMENTS_AT..].chunks_exact_mut(4).zip(&numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        prop_assert_eq!(&loan, &bytes);
        if let Some(elements) = Data::Long(&numbers).number_bytes() {
            loan[ELEMENTS_AT..ELEMENTS_AT + elements.len()].copy_from_slice(elements);
            prop_assert_eq!(loan, bytes);
        }
    }

    #[test]
    fn declarations_lead_back(
        attribute in any::<u32>(),
        epoch in any::<u32>(),
        flags in any::<[bool; 4]>(),
        texts in any::<[String; 3]>(),
        labels in vec("\\PC{0,9}", 0..4),
        limits in any::<[Option<f64>; 6]>(),
        bands in any::<[Option<(u8, u8)>; 4]>(),
        periods in any::<(Option<u64>, u64, Option<u32>)>(),
        unknown in vec(any::<u8>(), 0..3),
    ) {
        let band = |band: Option<(u8, u8)>| band.map(|(low, high)| Band::new(-f64::from(low), f64::from(high)).unwrap());
        let [label, description, unit] = texts;
        let limits = limits.map(|limit| limit.filter(|limit| !limit.is_nan()));
        let declaration = Declaration {
            attribute,
            epoch,
            presence: if flags[0] { Presence::Declared } else { Presence::Withdrawn },
            own_stream: flags[1],
            for_hosts: flags[3],
            redundant: flags[2],
            config: AttributeConfig {
                max_x: 3,
                max_y: 4,
                writable: Writable::ReadWrite,
                label, description, unit, labels,
                limits: Limits::of_numbers(limits),
                criteria: Criteria {
                    change: Thresholds { rel: band(bands[0]), abs: band(bands[1]) },
                    archive: Thresholds { rel: band(bands[2]), abs: band(bands[3]) },
                    archive_period_ms: periods.0,
                    period_ms: periods.1,
                },
                polled_ms: periods.2,
                ..AttributeConfig::new("SR/vac/1/p".parse().unwrap(), DataType::Enum, Format::Image)
            },
            unknown: unknown.iter().flat_map(|&byte| [byte; 4]).collect(),
        };
        let mut bytes = Vec::new();
        declaration.encode(&mut bytes).unwrap();
        prop_assert_eq!(Declaration::parse(&bytes).unwrap(), declaration);
        for cut in 0..bytes.len() {
            prop_assert!(Declaration::parse(&bytes[..cut]).is_err());
        }
    }
}

#[test]
fn numbers_of_later_releases_are_no_neighbours() {
    let mut bytes = Vec::new();
    EventSample::of(1, Value::scalar(&1u8)).encode(&mut bytes).unwrap();
    bytes[36] = 77;
    assert_eq!(EventView::parse(&bytes).unwrap().quality, Quality::Invalid);
    bytes[37] = 3;
    assert!(EventView::parse(&bytes).unwrap_err().to_string().contains("unknown format"));
    bytes[37] = 0;
    bytes[48] = 15;
    assert!(EventView::parse(&bytes).unwrap_err().to_string().contains("unknown data type"));
    assert_eq!(DevState::read(14), DevState::Unknown);
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_sent() {
    let mut bytes = Vec::new();
    let long = EventSample::of(1, Value { data: Data::UChar(&[1, 2]), shape: Shape::SCALAR });
    assert_eq!(long.encode(&mut bytes).unwrap_err().to_string(), "2 elements do not fit the shape scalar");
    let name = "n".repeat(256);
    let named = EventSample { name: &name, ..EventSample::without_value(1) };
    assert!(named.encode(&mut bytes).unwrap_err().to_string().contains("the name has 256 bytes"));
    let errors = vec![Failure::default(); 101];
    let high = EventSample { errors: &errors, ..EventSample::without_value(1) };
    assert_eq!(high.encode(&mut bytes), Err(BadValue::Stack(101)));
    let text = Failure::new("r", "d".repeat(65_537));
    let wordy = EventSample { errors: &[text], ..EventSample::without_value(1) };
    assert!(wordy.encode(&mut bytes).is_err());
}

#[test]
fn a_hundred_megabytes_go_through() {
    let image = vec![7u16; 50_000_000];
    let mut bytes = Vec::new();
    EventSample::of(1, Value::image(&image, 10_000, 5_000)).encode(&mut bytes).unwrap();
    assert_eq!(bytes.len(), len_around(100_000_000));
    let view = EventView::parse(&bytes).unwrap();
    assert_eq!((view.shape, view.value.unwrap().len()), (Shape::image(10_000, 5_000), 50_000_000));
}
