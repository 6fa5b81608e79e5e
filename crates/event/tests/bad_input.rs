//! Values that do not fit the attribute, numbers at the ends of their range, empty values and odd names. Servers and subscribers reject them by name, or deliver them as they were given, and never deliver anything else.

use std::time::Duration;

use tampu_event::{
    criteria::Reading,
    server::{DeclareError, PushError},
};
use tampu_types::event::{
    AttributeConfig, AttributeName, AttributePattern, DataType, DevState, Format, Kinds, Reason, Value, ValueView, Values,
};

mod support;
use support::{Log, MS, Scene, wish};

/// One element of each type.
fn samples() -> Vec<(DataType, Values)> {
    vec![
        (DataType::Boolean, Values::Boolean(vec![true])),
        (DataType::UChar, Values::UChar(vec![1])),
        (DataType::Short, Values::Short(vec![-1])),
        (DataType::UShort, Values::UShort(vec![1])),
        (DataType::Long, Values::Long(vec![-1])),
        (DataType::ULong, Values::ULong(vec![1])),
        (DataType::Long64, Values::Long64(vec![-1])),
        (DataType::ULong64, Values::ULong64(vec![1])),
        (DataType::Float, Values::Float(vec![1.5])),
        (DataType::Double, Values::Double(vec![1.5])),
        (DataType::String, Values::String(vec!["x".into()])),
        (DataType::State, Values::State(vec![DevState::Moving])),
        (DataType::Encoded, Values::Encoded { format: "f".into(), data: vec![1] }),
        (DataType::Enum, Values::Enum(vec![0])),
    ]
}

fn config(name: &str, data_type: DataType, format: Format) -> AttributeConfig {
    let mut config = AttributeConfig::new(name.parse().unwrap(), data_type, format);
    (config.max_x, config.max_y) = match format {
        Format::Scalar => (config.max_x, config.max_y),
        Format::Spectrum => (4, 0),
        Format::Image => (4, 3),
    };
    config.labels = vec!["off".into(), "on".into()];
    config
}

fn scalar(values: &Values) -> Value<'_> {
    Value { data: values.as_data(), shape: tampu_types::event::Shape::SCALAR }
}

#[test]
fn each_type_takes_its_own_values_and_no_others() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "server"), scene.subscriber("b", "panel"));
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["t/*"]).kinds(Kinds::USER), log.call());
    let mut attributes = Vec::new();
    for (index, (data_type, _)) in samples().into_iter().enumerate() {
        attributes.push(server.server.declare(config(&format!("t/t/{index}/v"), data_type, Format::Scalar)).unwrap());
    }
    scene.pass(100 * MS, &[&server], &[&client]);
    log.take();
    for (attribute, (own, _)) in attributes.iter().zip(samples()) {
        for (other, values) in samples() {
            let pushed = attribute.push_as(Kinds::USER, &Reading::of(scalar(&values)), None);
            if other == own {
                pushed.unwrap();
            } else {
                let error = pushed.unwrap_err();
                assert!(matches!(error, PushError::Wrong(_)) && error.to_string().contains(attribute.name().as_str()), "{error}");
            }
        }
    }
    scene.pass(100 * MS, &[&server], &[&client]);
    let updates = log.take();
    assert_eq!(updates.len(), samples().len(), "what was refused was not sent");
    for (_, values) in samples() {
        let told = updates.iter().filter_map(|update| update.reading()?.value).find(|value| value.to_values() == values);
        assert!(told.is_some(), "{values:?} is told as it was given");
    }
    assert!(updates.iter().all(|update| update.number == 1));
}

#[test]
fn shapes_that_are_not_the_attribute_s_are_refused_and_nothing_is_a_value() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "server"), scene.subscriber("b", "panel"));
    let spectrum = server.server.declare(config("t/t/t/spectrum", DataType::Short, Format::Spectrum)).unwrap();
    let image = server.server.declare(config("t/t/t/image", DataType::Short, Format::Image)).unwrap();
    let texts = server.server.declare(config("t/t/t/texts", DataType::String, Format::Spectrum)).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["t/*"]).kinds(Kinds::USER), log.call());
    scene.pass(100 * MS, &[&server], &[&client]);
    log.take();
    let push = |attribute: &tampu_event::Attribute, value| attribute.push_as(Kinds::USER, &Reading::of(value), None);
    let elements = [1i16; 20];
    for wrong in [
        Value::scalar(&1i16),
        Value::spectrum(&elements[..5]),
        Value::image(&elements[..4], 2, 2),
        Value { data: tampu_types::event::Data::Short(&elements[..3]), shape: tampu_types::event::Shape::spectrum(4) },
    ] {
        assert!(push(&spectrum, wrong).is_err(), "{wrong:?}");
    }
    for wrong in [
        Value::scalar(&1i16),
        Value::spectrum(&elements[..4]),
        Value::image(&elements[..10], 5, 2),
        Value::image(&elements[..8], 2, 4),
        Value::image(&elements[..7], 4, 2),
    ] {
        assert!(push(&image, wrong).is_err(), "{wrong:?}");
    }
    push(&spectrum, Value::spectrum::<i16>(&[])).unwrap();
    push(&image, Value::image::<i16>(&[], 0, 0)).unwrap();
    push(&texts, Value::spectrum::<String>(&[])).unwrap();
    push(&texts, Value::spectrum(&[String::new(), "\u{1f52d}\n\"".to_owned()])).unwrap();
    scene.pass(100 * MS, &[&server], &[&client]);
    let lengths: Vec<usize> = log.take().iter().filter_map(|update| Some(update.reading()?.value?.len())).collect();
    assert_eq!(lengths, [0, 0, 0, 2]);
}

#[test]
fn numbers_at_their_ends_are_told_bit_for_bit_and_criteria_know_them() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "server"), scene.subscriber("b", "panel"));
    let mut doubles = config("t/t/t/doubles", DataType::Double, Format::Spectrum);
    doubles.criteria.change.rel = Some("10".parse().unwrap());
    let doubles = server.server.declare(doubles).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["t/*"]), log.call());
    scene.pass(100 * MS, &[&server], &[&client]);
    log.take();
    let series: [[f64; 2]; 9] = [
        [0.0, 1.0],
        [f64::NAN, 1.0],
        // No change: NaN after NaN.
        [f64::NAN, 1.0],
        [f64::INFINITY, 1.0],
        [f64::NEG_INFINITY, 1.0],
        [f64::MAX, 1.0],
        [f64::MIN_POSITIVE, 1.0],
        [5e-324, 1.0],
        [-0.0, 1.0],
    ];
    let sent: Vec<bool> =
        series.iter().map(|two| !doubles.push(Value::spectrum(two)).unwrap().kinds.intersects(Kinds::CHANGE)).collect();
    assert_eq!(sent, [false, false, true, false, false, false, false, false, false], "held back");
    scene.pass(100 * MS, &[&server], &[&client]);
    let told: Vec<u64> = log
        .take()
        .iter()
        .filter_map(|update| match update.reading()?.value? {
            ValueView::Double(all) => all.get(0).map(f64::to_bits),
            _ => None,
        })
        .collect();
    let expected: Vec<u64> =
        series.iter().enumerate().filter(|(place, _)| *place != 2).map(|(_, two)| two[0].to_bits()).collect();
    assert_eq!(told, expected);
}

#[test]
fn names_that_are_none_are_refused_and_odd_ones_are_names() {
    let long = format!("a/b/c/{}", "d".repeat(249));
    for none in [
        "",
        "a",
        "a/b/c",
        "a/b/c/",
        "/b/c/d",
        "a//c/d",
        "a/b/c/d/e",
        "a/b/c/d*",
        "a/b/c/?",
        "a/b/c/d#",
        "a/b/c/d$",
        " a/b/c/d",
        "a/b/c/d ",
        "a/b/c/\n",
        "a/b/c/\0",
        &format!("{long}d"),
    ] {
        assert!(none.parse::<AttributeName>().is_err(), "{none:?}");
    }
    for none in ["", "a/b", "a/b/c/d/e", "a//*", "*/*/*/*/*", "a/\u{7}/*"] {
        assert!(AttributePattern::new(none).is_err(), "{none:?}");
    }
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "server"), scene.subscriber("b", "panel"));
    let odd = ["Äntenne/€/七/°C", "a.b/-/%2f/..", "a/b/c/ d e".trim_end(), "~/\\/'/\"", long.as_str()];
    let odd: Vec<&str> = odd.into_iter().filter(|name| name.parse::<AttributeName>().is_ok()).collect();
    assert!(odd.len() >= 4);
    let log = Log::default();
    // A name without an attribute delivers nothing, and that is not an error.
    let unknown = client.client.subscribe(wish(&["no/such/one/here"]), log.call());
    let _all: Vec<_> = odd.iter().map(|name| client.client.subscribe(wish(&[name]).kinds(Kinds::USER), log.call())).collect();
    let attributes: Vec<_> =
        odd.iter().map(|name| server.server.declare(config(name, DataType::Double, Format::Scalar)).unwrap()).collect();
    let twice = server.server.declare(config(&odd[0].to_uppercase(), DataType::Double, Format::Scalar));
    assert!(matches!(twice, Err(DeclareError::Twice(_))), "case does not count");
    scene.pass(Duration::from_millis(200), &[&server], &[&client]);
    log.take();
    for (attribute, value) in attributes.iter().zip([1.0f64, 2.0, 3.0, 4.0, 5.0]) {
        attribute.push_as(Kinds::USER, &Reading::of(Value::scalar(&value)), None).unwrap();
    }
    scene.pass(Duration::from_millis(200), &[&server], &[&client]);
    let updates = log.take();
    let told: Vec<(&str, Reason)> = updates.iter().map(|update| (update.attribute.config.name.as_str(), update.reason)).collect();
    assert_eq!(told, odd.iter().map(|name| (*name, Reason::Update)).collect::<Vec<_>>());
    assert_eq!((unknown.stats().bound, unknown.stats().delivered), (0, 0));
}
