//! Tests of values that cross the border, and of bad input. `tests/peers/event_c.py` has the functions on a real bus.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr,
};

use tampu_event::{DataType, Format, Kinds};
use tampu_types::event::{DevState, EventSample, EventView, Shape, Values};

use super::{client::*, push::*, queue::*, server::*, tampu_event_last_error, value::*};

fn last_error() -> String {
    // SAFETY: the pointer is always a C string, valid until the next failure of this thread.
    unsafe { CStr::from_ptr(tampu_event_last_error()) }.to_str().unwrap().to_owned()
}

fn of_c(data_type: DataType, format: Format, data: *const c_void, count: usize) -> ValueOfC {
    let encoding = if data_type == DataType::Encoded { c"JPEG".as_ptr() } else { ptr::null() };
    ValueOfC { data_type: data_type as i32, format: format as i32, x: 2, y: 2, data, count, encoding }
}

/// Sends a value of C's through a sample's bytes, at this distance from an aligned address, and back to C.
fn there_and_back(value: &ValueOfC, distance: usize, check: impl FnOnce(&ValueOfC)) -> Values {
    let mut converted = Converted::default();
    // SAFETY: the tests make values as the header says.
    let value = unsafe { value.borrow(&mut converted) }.unwrap();
    let mut bytes = Vec::new();
    EventSample { value: Some(value), ..EventSample::without_value(0) }.encode(&mut bytes).unwrap();
    let mut words = vec![0u64; bytes.len() / 8 + 2];
    let memory = zerocopy::IntoBytes::as_mut_bytes(&mut words[..]);
    memory[distance..distance + bytes.len()].copy_from_slice(&bytes);
    let view = EventView::parse(&memory[distance..distance + bytes.len()]).unwrap();
    let (mut told, value) = (Told::default(), view.value.unwrap());
    check(&told.view(&value, view.shape));
    value.to_values()
}

/// Checks a row of numbers at every distance that a batch has.
fn row<T: Copy + PartialEq + std::fmt::Debug>(data_type: DataType, elements: [T; 4], expected: Values) {
    for format in [Format::Spectrum, Format::Image] {
        for distance in [0, 4] {
            let value = of_c(data_type, format, elements.as_ptr().cast(), 4);
            let came = there_and_back(&value, distance, |told| {
                assert_eq!((told.data_type, told.format, told.count), (data_type as i32, format as i32, 4));
                assert_eq!((told.x, told.y), if format == Format::Image { (2, 2) } else { (4, 0) });
                assert!(told.data.cast::<T>().is_aligned());
                // SAFETY: `told` has four elements of this type.
                assert_eq!(unsafe { std::slice::from_raw_parts(told.data.cast::<T>(), 4) }, elements);
            });
            assert_eq!(came, expected);
        }
    }
}

#[test]
fn every_type_comes_back_as_it_was() {
    row(DataType::Boolean, [0u8, 1, 1, 0], Values::Boolean(vec![false, true, true, false]));
    row(DataType::UChar, [0u8, 1, 128, 255], Values::UChar(vec![0, 1, 128, 255]));
    row(DataType::Short, [i16::MIN, -1, 0, i16::MAX], Values::Short(vec![i16::MIN, -1, 0, i16::MAX]));
    row(DataType::UShort, [0, 1, 2, u16::MAX], Values::UShort(vec![0, 1, 2, u16::MAX]));
    row(DataType::Long, [i32::MIN, -1, 0, i32::MAX], Values::Long(vec![i32::MIN, -1, 0, i32::MAX]));
    row(DataType::ULong, [0, 1, 2, u32::MAX], Values::ULong(vec![0, 1, 2, u32::MAX]));
    row(DataType::Long64, [i64::MIN, -1, 0, i64::MAX], Values::Long64(vec![i64::MIN, -1, 0, i64::MAX]));
    row(DataType::ULong64, [0, 1, 2, u64::MAX], Values::ULong64(vec![0, 1, 2, u64::MAX]));
    row(DataType::Float, [0.5f32, -0.0, 1e30, f32::INFINITY], Values::Float(vec![0.5, -0.0, 1e30, f32::INFINITY]));
    row(DataType::Double, [0.5f64, -0.0, 1e300, f64::INFINITY], Values::Double(vec![0.5, -0.0, 1e300, f64::INFINITY]));
    row(DataType::Enum, [0i16, 1, 2, 3], Values::Enum(vec![0, 1, 2, 3]));
    let states = [DevState::On, DevState::Fault, DevState::Moving, DevState::Unknown];
    row(DataType::State, states.map(|state| state as u8), Values::State(states.to_vec()));
}

#[test]
fn texts_and_bytes_come_back_as_they_were() {
    let texts: [*const c_char; 2] = [c"h\u{e9}llo".as_ptr(), c"".as_ptr()];
    let value = of_c(DataType::String, Format::Spectrum, texts.as_ptr().cast(), 2);
    let came = there_and_back(&value, 4, |told| {
        // SAFETY: `told` has two C strings.
        let told = unsafe { std::slice::from_raw_parts(told.data.cast::<*const c_char>(), 2) };
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(told[0]) }, c"h\u{e9}llo");
    });
    assert_eq!(came, Values::String(vec!["h\u{e9}llo".to_owned(), String::new()]));
    let value = of_c(DataType::Encoded, Format::Scalar, [1u8, 2, 3].as_ptr().cast(), 3);
    let came = there_and_back(&value, 0, |told| {
        // SAFETY: an encoded value has a word for its format.
        assert_eq!((told.count, unsafe { CStr::from_ptr(told.encoding) }), (3, c"JPEG"));
    });
    assert_eq!(came, Values::Encoded { format: "JPEG".to_owned(), data: vec![1, 2, 3] });
}

#[test]
fn values_that_cannot_be_are_refused() {
    let numbers = [1.0f64, 2.0, 3.0, 4.0];
    let good = of_c(DataType::Double, Format::Scalar, numbers.as_ptr().cast(), 1);
    let odd_address = numbers.as_ptr().cast::<u8>().wrapping_add(1).cast();
    for (bad, why) in [
        (ValueOfC { data_type: 0, ..good }, "the data type: invalid value '0'"),
        (ValueOfC { data_type: 300, ..good }, "the data type: invalid value '300'"),
        (ValueOfC { format: 3, ..good }, "the format: invalid value '3'"),
        (ValueOfC { count: 2, ..good }, "a scalar has one element"),
        (ValueOfC { data: ptr::null(), ..good }, "the value's data is NULL"),
        (ValueOfC { data: odd_address, ..good }, "pass an array of the elements' type"),
        (ValueOfC { count: usize::MAX / 4, ..good }, "pass an array of the elements' type"),
        (ValueOfC { data_type: DataType::State as i32, data: [99u8].as_ptr().cast(), ..good }, "the state: invalid value '99'"),
    ] {
        let mut converted = Converted::default();
        // SAFETY: what is wrong is found before memory is read that is not there.
        let refused = unsafe { bad.borrow(&mut converted) }.map(|value| value.shape).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(Shape::image(2, 2).elements(), 4);
}

#[test]
fn null_and_odd_options_are_told_and_harmless() {
    let name: *const c_char = c"a/b/c/d".as_ptr();
    let condition = OptionsOfC {
        kinds: Kinds::ALARM.0,
        without_first: 1,
        unreliable: 0,
        in_place: 0,
        condition: c"> many".as_ptr(),
        moved_rel: ptr::null(),
        moved_abs: ptr::null(),
        every_ms: 0,
    };
    // SAFETY: all functions accept NULL, and the options are whole.
    unsafe {
        assert!(tampu_event_server_open(ptr::null()).is_null() && tampu_event_client_open(ptr::null()).is_null());
        assert_eq!(last_error(), "the source's name is NULL");
        assert!(tampu_event_server_open(c"".as_ptr()).is_null());
        assert!(tampu_event_declare(ptr::null(), ptr::null(), 0).is_null());
        assert_eq!(last_error(), "the server is NULL");
        assert_eq!(tampu_event_push(ptr::null(), ptr::null()), -1);
        assert_eq!(last_error(), "the value is NULL");
        assert_eq!((tampu_event_readers(ptr::null()), tampu_event_flush(ptr::null(), 1)), (-1, -1));
        assert!(tampu_event_subscribe(ptr::null(), &name, 1, ptr::null(), 0, None, ptr::null_mut()).is_null());
        assert_eq!(last_error(), "the client is NULL");
        assert_eq!(tampu_event_queue_next(ptr::null(), 1, ptr::null_mut(), 0), -1);
        assert_eq!((tampu_event_server_close(ptr::null_mut()), tampu_event_client_close(ptr::null_mut())), (0, 0));
        assert_eq!(tampu_event_unsubscribe(ptr::null_mut()), 0);
        tampu_event_withdraw(ptr::null_mut());
        tampu_event_queue_close(ptr::null_mut());
        let refused = options(&name, 1, &condition, size_of::<OptionsOfC>()).unwrap_err().to_string();
        assert!(refused.starts_with("the condition: "), "{refused}");
        let fair = OptionsOfC { condition: ptr::null(), moved_abs: c"0.5".as_ptr(), every_ms: 10, ..condition };
        let read = options(&name, 1, &fair, size_of::<OptionsOfC>()).unwrap();
        assert_eq!((read.kinds, read.first, read.reliable, read.filter.every_ms), (Kinds::ALARM, false, true, Some(10)));
        assert!(read.filter.moved.is_some_and(|moved| moved.abs.is_some() && moved.rel.is_none()));
        assert_eq!(options(ptr::null(), 1, ptr::null(), 0).unwrap_err().to_string(), "the list of attributes is NULL");
    }
}
