//! Long values: streams of their own, lent memory, looking at them where they lie.

use std::sync::{Arc, Mutex};

use tampu_bus::{LentBytes, QosPatch};
use tampu_event::{
    criteria::Reading,
    server::{Attribute, PushError},
};
use tampu_types::event::{AttributeConfig, DataType, Format, Kinds, Missed, Quality, Reason, Shape, Value, ValueView};

mod support;
use support::*;

#[test]
fn large_values_have_streams_of_their_own_and_lie_in_lent_memory() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "camera"), scene.subscriber("a", "panel"));
    let mut config = AttributeConfig::new("lab/camera/1/image".parse().unwrap(), DataType::UShort, Format::Image);
    (config.max_x, config.max_y) = (512, 512);
    let image = server.server.declare(config).unwrap();
    let small = server.server.declare(scalar("lab/camera/1/gain")).unwrap();
    small.push(Value::scalar(&1.0)).unwrap();
    let mut lent = image.lend::<u16>(Shape::image(512, 512)).unwrap();
    lent.iter_mut().enumerate().for_each(|(at, pixel)| *pixel = at as u16);
    lent.publish(Kinds::USER, Quality::Valid).unwrap();
    let seen: Arc<Mutex<Vec<(Reason, u64, u32)>>> = Arc::default();
    let keep = seen.clone();
    let _subscription = client.client.subscribe(wish(&["lab/camera/1/image"]).kinds(Kinds::USER), move |event| {
        let value = event.reading.and_then(|reading| reading.value);
        let Some(ValueView::UShort(pixels)) = value else { panic!("{event:?}") };
        let good = pixels.iter().enumerate().all(|(at, pixel)| pixel == (at as u16).wrapping_mul(event.number as u16));
        assert!(good && pixels.as_slice().is_some());
        keep.lock().unwrap().push((event.reason, event.number, pixels.len() as u32));
    });
    scene.pass(100 * MS, &[&server], &[&client]);
    assert_eq!(*seen.lock().unwrap(), [(Reason::First, 1, 512 * 512)], "the value that lies in the stream only");
    for number in 2..6u16 {
        let pixels: Vec<u16> = (0..512 * 512).map(|at| (at as u16).wrapping_mul(number)).collect();
        image.push_as(Kinds::USER, &Reading::of(Value::image(&pixels, 512, 512)), None).unwrap();
        scene.pass(10 * MS, &[&server], &[&client]);
    }
    assert_eq!(seen.lock().unwrap().iter().map(|seen| seen.1).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn long_values_are_seen_in_place_and_what_was_taken_back_meanwhile_is_told() {
    let scene = Scene::new();
    // This server waits for no reader, so it takes memory back while a reader looks at it.
    let patch = QosPatch { topics: "event-own/**".to_owned(), max_wait_ms: Some(0), pool: Some(1 << 20), ..QosPatch::default() };
    let (server, client) = (scene.publisher_with("a", "camera", vec![patch]), scene.subscriber("a", "panel"));
    let mut config = AttributeConfig::new("lab/camera/1/image".parse().unwrap(), DataType::Long, Format::Spectrum);
    config.max_x = 1 << 16;
    let image = server.server.declare(config).unwrap();
    let publish = |image: &Attribute, value: i32| {
        let mut lent = image.lend::<i32>(Shape::spectrum(1 << 16)).unwrap();
        lent.fill(value);
        lent.publish(Kinds::USER, Quality::Valid).unwrap();
    };
    let seen: Arc<Mutex<Vec<(Reason, u64, Missed)>>> = Arc::default();
    let (keep, overtaken) = (seen.clone(), image.clone());
    let places: Arc<Mutex<Vec<usize>>> = Arc::default();
    let keep_places = places.clone();
    let wish = wish(&["lab/camera/1/image"]).kinds(Kinds::USER).in_place();
    let _subscription = client.client.subscribe(wish, move |event| {
        keep.lock().unwrap().push((event.reason, event.number, event.missed));
        if let Some(ValueView::Long(numbers)) = event.reading.and_then(|reading| reading.value) {
            let slice = numbers.as_slice().unwrap();
            assert!(event.number == 3 || slice.iter().all(|&number| number == event.number as i32));
            keep_places.lock().unwrap().push(slice.as_ptr() as usize);
            let lent = event.lent().filter(|lent| lent.is_whole());
            assert_eq!(lent.and_then(LentBytes::place), Some((event.bytes().as_ptr(), event.bytes().len())));
            if event.number == 3 {
                (4..9).for_each(|value| publish(&overtaken, value));
                assert!(event.lent().is_some_and(|lent| !lent.is_whole()));
            }
        }
    });
    scene.pass(100 * MS, &[&server], &[&client]);
    for value in 1..4 {
        publish(&image, value);
        scene.pass(10 * MS, &[&server], &[&client]);
    }
    scene.pass(500 * MS, &[&server], &[&client]);
    let seen = seen.lock().unwrap();
    let first = [(Reason::First, 0), (Reason::Update, 1), (Reason::Update, 2), (Reason::Update, 3), (Reason::Gap, 0)];
    assert_eq!(seen.iter().take(5).map(|seen| (seen.0, seen.1)).collect::<Vec<_>>(), first, "{seen:?}");
    assert_eq!(seen[4].2, Missed::Exactly(3, 4), "{seen:?}");
    let mut told: Vec<u64> = seen[5..].iter().filter(|seen| seen.0 == Reason::Update).map(|seen| seen.1).collect();
    for (_, _, missed) in &seen[5..] {
        if let Missed::Exactly(from, to) = *missed {
            told.extend(from..to);
        }
    }
    told.sort_unstable();
    assert_eq!(told, [4, 5, 6, 7, 8], "{seen:?}");
    let places = places.lock().unwrap();
    assert_eq!(places[1] - places[0], places[2] - places[1], "one behind the other in the server's memory: {places:?}");
}

#[test]
fn a_long_value_that_lies_in_lent_memory_is_the_first_value_of_later_subscribers() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "camera"), scene.subscriber("a", "panel"));
    let mut config = AttributeConfig::new("lab/camera/1/image".parse().unwrap(), DataType::UShort, Format::Image);
    (config.max_x, config.max_y) = (512, 512);
    let image = server.server.declare(config).unwrap();
    let push = |value: u16| {
        let pixels = vec![value; 512 * 512];
        image.push_as(Kinds::USER, &Reading::of(Value::image(&pixels, 512, 512)), None).unwrap();
    };
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let subscribe = |nth: usize| {
        let keep = seen.clone();
        client.client.subscribe(wish(&["lab/camera/1/image"]).kinds(Kinds::USER).alone(), move |event| {
            let value = event.reading.and_then(|reading| reading.value);
            let Some(ValueView::UShort(pixels)) = value else { panic!("{event:?}") };
            let first = pixels.get(0).unwrap();
            assert!(pixels.len() == 512 * 512 && pixels.iter().all(|pixel| pixel == first));
            keep.lock().unwrap().push((nth, event.reason, event.number, first));
        })
    };
    (1..100).for_each(push);
    // By then nobody takes a subscription for older than the attribute.
    scene.pass(100 * MS, &[&server], &[&client]);
    let mut subscriptions = Vec::new();
    for nth in 0..3 {
        // The answer to the one before lies in lent memory, too.
        subscriptions.push(subscribe(nth));
        scene.pass(100 * MS, &[&server], &[&client]);
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [(nth, Reason::First, 99, 99)]);
    }
    push(100);
    scene.pass(100 * MS, &[&server], &[&client]);
    let mut came = std::mem::take(&mut *seen.lock().unwrap());
    came.sort_by_key(|came| came.0);
    assert_eq!(came, [0, 1, 2].map(|nth| (nth, Reason::Update, 100, 100)));
}

#[test]
fn an_attribute_s_last_event_that_others_overwrote_is_asked_for() {
    let scene = Scene::new();
    let patch = QosPatch { topics: "event/*".to_owned(), max_wait_ms: Some(0), pool: Some(1 << 16), ..QosPatch::default() };
    let (server, client) = (scene.publisher_with("a", "spectra", vec![patch]), scene.subscriber("a", "panel"));
    let spectrum = |name: &str| {
        let mut config = AttributeConfig::new(name.parse().unwrap(), DataType::Long, Format::Spectrum);
        config.max_x = 1024;
        server.server.declare(config).unwrap()
    };
    let (quiet, busy) = (spectrum("a/b/c/quiet"), spectrum("a/b/c/busy"));
    let push =
        |to: &Attribute, value: i32| to.push_as(Kinds::CHANGE, &Reading::of(Value::spectrum(&[value; 1024])), None).unwrap();
    let log = Log::default();
    push(&quiet, 1);
    let _subscription = client.client.subscribe(wish(&["a/b/c/quiet"]), log.call());
    scene.pass(100 * MS, &[&server], &[&client]);
    assert_eq!(log.reasons(), [Reason::First]);
    // The next event lies in memory that the other attribute's events reuse before the client reads it.
    push(&quiet, 2);
    (0..200).for_each(|value| {
        push(&busy, value);
    });
    scene.pass(500 * MS, &[&server], &[&client]);
    let told = log.take();
    assert_eq!(told.iter().map(|told| told.reason).collect::<Vec<_>>(), [Reason::Gap, Reason::Resumed], "{told:?}");
    assert_eq!((told[0].missed, told[1].number), (Missed::Exactly(2, 3), 2));
}

#[test]
fn a_value_of_a_hundred_megabytes_goes_by_lent_memory() {
    let scene = Scene::new();
    let (server, client) = (scene.publisher("a", "camera"), scene.subscriber("a", "panel"));
    let mut config = AttributeConfig::new("lab/camera/1/huge".parse().unwrap(), DataType::UShort, Format::Image);
    (config.max_x, config.max_y) = (10_000, 5_000);
    let huge = server.server.declare(config).unwrap();
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let keep = seen.clone();
    let _subscription = client.client.subscribe(wish(&["lab/camera/1/huge"]).kinds(Kinds::USER), move |event| {
        let value = event.reading.and_then(|reading| reading.value);
        let told = value.map_or((0, None), |value| (value.len(), value.number(49_999_999)));
        keep.lock().unwrap().push((event.reason, told.0, told.1));
    });
    scene.pass(200 * MS, &[&server], &[&client]);
    let mut image = vec![0u16; 50_000_000];
    image[49_999_999] = 77;
    huge.push_as(Kinds::USER, &Reading::of(Value::image(&image, 10_000, 5_000)), None).unwrap();
    scene.pass(50 * MS, &[&server], &[&client]);
    assert_eq!(*seen.lock().unwrap(), [(Reason::First, 0, None), (Reason::Update, 50_000_000, Some(77.0))]);
    // One row more than was declared.
    let tall = vec![0u16; 50_010_000];
    assert!(matches!(
        huge.push_as(Kinds::USER, &Reading::of(Value::image(&tall, 10_000, 5_001)), None),
        Err(PushError::Wrong(_))
    ));
}
