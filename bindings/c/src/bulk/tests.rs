//! Tests of the functions through their C interface, without the bus: a transfer, and rejected arguments.

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::{
        Mutex,
        atomic::{AtomicI32, Ordering},
    },
};

use tampu_bulk::{
    Protection,
    message::Transport,
    settings::{FlowPatch, Protocol, Slow},
};

use super::{block::*, callbacks::*, control::*, participant::*, periodic::*, receiver::*, sender::*, settings::*, state::*};

fn last_error() -> String {
    // SAFETY: the pointer is always a C string, valid until the next failure of this thread.
    unsafe { CStr::from_ptr(tampu_bulk_last_error()) }.to_str().unwrap().to_owned()
}

/// Calls that a receiver's callbacks have seen.
#[derive(Default)]
struct Seen {
    all: Mutex<Vec<String>>,
    bytes: Mutex<Vec<u8>>,
    /// Result of the callback for data.
    answer: AtomicI32,
    receiver: Mutex<usize>,
}

/// # Safety
/// The context is a `Seen`.
unsafe fn seen<'a>(context: *mut c_void) -> &'a Seen {
    // SAFETY: by the caller.
    unsafe { &*context.cast::<Seen>() }
}

unsafe extern "C" fn on_start(context: *mut c_void, start: *const StartOfC) -> i32 {
    // SAFETY: the library's promise.
    let (seen, start) = unsafe { (seen(context), &*start) };
    // SAFETY: as above.
    let (sender, parameter) =
        unsafe { (CStr::from_ptr(start.sender), std::slice::from_raw_parts(start.parameter, start.length)) };
    seen.all.lock().unwrap().push(format!("start {sender:?} {parameter:?}"));
    0
}

unsafe extern "C" fn on_data(context: *mut c_void, data: *const DataOfC) -> i32 {
    // SAFETY: the library's promise.
    let (seen, data) = unsafe { (seen(context), &*data) };
    // SAFETY: as above.
    seen.bytes.lock().unwrap().extend_from_slice(unsafe { std::slice::from_raw_parts(data.bytes, data.length) });
    let answer = seen.answer.load(Ordering::Relaxed);
    if answer != 0 {
        // SAFETY: a literal.
        unsafe { tampu_bulk_explain(c"the disk is full".as_ptr()) };
    }
    answer
}

unsafe extern "C" fn on_stop(context: *mut c_void, end: *const EndOfC) -> i32 {
    // SAFETY: the library's promise.
    let (seen, end) = unsafe { (seen(context), &*end) };
    let receiver = *seen.receiver.lock().unwrap() as *mut ReceiverHandle;
    // SAFETY: it is open, and refuses.
    let closed = unsafe { tampu_bulk_receiver_close(receiver) };
    seen.all.lock().unwrap().push(format!("stop {} {} {}, closed {closed}", end.bytes, end.complete, end.stopped));
    0
}

fn handler(seen: &Seen) -> HandlerOfC {
    HandlerOfC {
        context: ptr::from_ref(seen).cast_mut().cast(),
        start: Some(on_start),
        data: Some(on_data),
        stop: Some(on_stop),
        lost: None,
        fault: None,
        protection: 0,
        reserved: 0,
    }
}

#[test]
fn a_member_of_zero_is_left_to_the_configuration_and_minus_one_is_not() {
    let name = |text: &str| tampu_bulk::Name::new(text).unwrap();
    let empty = || FlowPatch::new(name("s"), name("f"));
    // SAFETY: the texts are literals.
    let said = |settings: SettingsOfC| unsafe { settings.said(empty()) }.unwrap();
    assert_eq!(said(SettingsOfC::default()), empty());
    let default = SettingsOfC { transport: -1, checked: -1, protection: -1, slow: -1, ..SettingsOfC::default() };
    let all = FlowPatch {
        protocol: Some(Protocol::Auto),
        checksum: Some(false),
        protection: Some(Protection::Auto),
        slow: Some(Slow::Cut),
        ..empty()
    };
    assert_eq!(said(default), all);
    let given = SettingsOfC {
        transport: 4,
        checked: 1,
        protection: 3,
        slow: 1,
        receivers: 2,
        throttle: 5e6,
        group: c"239.255.7.1:4711".as_ptr(),
        group_interface: c"eth0".as_ptr(),
        group_ttl: 3,
        ..SettingsOfC::default()
    };
    let all = FlowPatch {
        protocol: Some(Protocol::Multicast),
        checksum: Some(true),
        protection: Some(Protection::Encrypted),
        slow: Some(Slow::Skip),
        receivers: Some(2),
        throttle_mb: Some(5.0),
        multicast: Some("239.255.7.1:4711".parse().unwrap()),
        interface: Some("eth0".parse().unwrap()),
        ttl: Some(3),
        ..empty()
    };
    assert_eq!(said(given), all);
}

/// Sends one byte, three times.
unsafe extern "C" fn three_times(context: *mut c_void, sender: *const SenderHandle) -> i32 {
    // SAFETY: the context is an `AtomicI32`, and the sender is open.
    unsafe {
        let calls = &*context.cast::<AtomicI32>();
        assert_eq!(tampu_bulk_every_end(ptr::null_mut()), -1, "a callback must not wait for itself");
        assert_eq!(tampu_bulk_send(sender, b"x".as_ptr(), 1), 0, "{}", last_error());
        i32::from(calls.fetch_add(1, Ordering::Relaxed) == 2)
    }
}

#[test]
fn blocks_are_sent_without_a_copy_and_a_callback_sends_at_an_interval() {
    let seen = Seen::default();
    let calls_made = AtomicI32::new(0);
    // SAFETY: handles from the functions themselves, literals, and contexts that outlive their users.
    unsafe {
        let (me, you) = (tampu_bulk_alone(c"c".as_ptr(), c"A".as_ptr()), tampu_bulk_alone(c"c".as_ptr(), c"B".as_ptr()));
        let (stream, flow, calls) = (c"stream".as_ptr(), c"flow".as_ptr(), handler(&seen));
        let receiver = tampu_bulk_receiver_open(you, stream, flow, ptr::null(), ptr::null(), &calls, size_of::<HandlerOfC>());
        *seen.receiver.lock().unwrap() = receiver as usize;
        let settings = SettingsOfC { slow: 1, acknowledge: 2, wait_ms: 7000, ..SettingsOfC::default() };
        let sender = tampu_bulk_sender_open(me, stream, flow, &settings, size_of::<SettingsOfC>());
        assert_eq!(tampu_bulk_sender_connect(sender, tampu_bulk_receiver_target(receiver)), 0, "{}", last_error());
        assert_eq!(tampu_bulk_sender_wait(sender, 1, 30_000), 1, "{}", last_error());
        assert_eq!(tampu_bulk_start(sender, ptr::null(), 0), 0, "{}", last_error());
        let block = tampu_bulk_block_new(sender, 1000);
        ptr::write_bytes(tampu_bulk_block_data(block), 7, 1000);
        assert_eq!(tampu_bulk_block_send(sender, block, 10), 0, "{}", last_error());
        assert_eq!(tampu_bulk_block_send(sender, tampu_bulk_block_new(sender, 5), 6), -1);
        assert_eq!(last_error(), "the length: invalid value '6'; at most that of the block");
        tampu_bulk_block_free(tampu_bulk_block_new(sender, 5));
        assert!(tampu_bulk_block_new(sender, usize::MAX).is_null());

        let context = ptr::from_ref(&calls_made).cast_mut().cast();
        let periodic = tampu_bulk_every(sender, 1000, Some(three_times), context);
        while !(*periodic).is_done() {
            std::thread::yield_now();
        }
        assert_eq!(tampu_bulk_every_end(periodic), 0);
        let mut state = StatusOfC::default();
        assert_eq!(tampu_bulk_sender_state(sender, &mut state, size_of::<StatusOfC>()), 0);
        assert_eq!((state.transfer, state.bytes, state.phase, state.receivers, state.connected), (1, 13, 1, 1, 1));
        assert_eq!(tampu_bulk_stop(sender, ptr::null_mut(), 0), 1, "{}", last_error());
        tampu_bulk_sender_close(sender);
        assert_eq!(tampu_bulk_receiver_close(receiver), 0);
        for (odd, why) in [
            (SettingsOfC { slow: 9, ..settings }, "slow receiver"),
            (SettingsOfC { acknowledge: 9, ..settings }, "calls that wait"),
        ] {
            assert!(tampu_bulk_sender_open(me, stream, flow, &odd, size_of::<SettingsOfC>()).is_null());
            assert!(last_error().contains(why), "{}", last_error());
        }
        tampu_bulk_leave(me);
        tampu_bulk_leave(you);
    }
    assert_eq!(calls_made.load(Ordering::Relaxed), 3);
    assert_eq!(*seen.bytes.lock().unwrap(), [[7; 10].as_slice(), b"xxx"].concat());
}

#[test]
fn transfers_arrive_whole_and_failures_are_told_to_the_sender() {
    let seen = Seen::default();
    // SAFETY: handles from the functions themselves, literals, and a context that outlives the receiver.
    unsafe {
        let (me, you) = (tampu_bulk_alone(c"c".as_ptr(), c"A".as_ptr()), tampu_bulk_alone(c"c".as_ptr(), c"B".as_ptr()));
        let (stream, flow, calls) = (c"stream".as_ptr(), c"flow".as_ptr(), handler(&seen));
        let receiver = tampu_bulk_receiver_open(you, stream, flow, ptr::null(), ptr::null(), &calls, size_of::<HandlerOfC>());
        assert!(!receiver.is_null(), "{}", last_error());
        *seen.receiver.lock().unwrap() = receiver as usize;
        let sender = tampu_bulk_sender_open(me, stream, flow, ptr::null(), 0);
        assert_eq!(tampu_bulk_send(sender, b"x".as_ptr(), 1), -1);
        assert!(last_error().contains("nothing was started"), "{}", last_error());
        assert_eq!(tampu_bulk_sender_connect(sender, tampu_bulk_receiver_target(receiver)), 0, "{}", last_error());
        assert_eq!(tampu_bulk_sender_wait(sender, 1, 30_000), 1, "{}", last_error());

        let sent: Vec<u8> = (0..700_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert_eq!(tampu_bulk_start(sender, b"p\0q".as_ptr(), 3), 0, "{}", last_error());
        for block in sent.chunks(300_000) {
            assert_eq!(tampu_bulk_send(sender, block.as_ptr(), block.len()), 0, "{}", last_error());
        }
        assert_eq!(tampu_bulk_send(sender, ptr::null(), 0), 0, "no data is no mistake");
        let mut report = ReportOfC::default();
        assert_eq!(tampu_bulk_stop(sender, &mut report, size_of::<ReportOfC>()), 1, "{}", last_error());
        assert_eq!((report.transfer, report.bytes, report.receivers, report.complete), (1, 700_000, 1, 1));
        assert!(*seen.bytes.lock().unwrap() == sent);

        // The callback gives up, and the sender gets the reason. This caller knows only the first field of the report.
        seen.answer.store(2, Ordering::Relaxed);
        assert_eq!(tampu_bulk_start(sender, ptr::null(), 0), 0, "{}", last_error());
        tampu_bulk_send(sender, sent.as_ptr(), 10);
        let mut report = ReportOfC { bytes: 77, ..ReportOfC::default() };
        assert_eq!(tampu_bulk_stop(sender, &mut report, 8), 0);
        assert!(last_error().contains("the disk is full"), "{}", last_error());
        assert_eq!((report.transfer, report.bytes), (2, 77));

        assert_eq!((tampu_bulk_start(sender, ptr::null(), 0), tampu_bulk_reset(sender)), (0, 0), "{}", last_error());
        assert_eq!(tampu_bulk_stop(sender, ptr::null_mut(), 0), -1, "given up already");
        tampu_bulk_sender_close(sender);
        assert_eq!(tampu_bulk_receiver_part(receiver, 30_000), 1);
        assert_eq!(tampu_bulk_receiver_close(receiver), 0);
        tampu_bulk_leave(me);
        tampu_bulk_leave(you);
    }
    let mut all = seen.all.lock().unwrap().clone();
    let third = all.split_off(4.min(all.len()));
    let expected = ["start \"A\" [112, 0, 113]", "stop 700000 1 1, closed -1", "start \"A\" []", "stop 10 0 1, closed -1"];
    assert_eq!(all, expected, "and then {third:?}");
    assert!(third.last().is_none_or(|last| last == "stop 0 0 0, closed -1"), "{third:?}");
}

#[test]
fn data_goes_to_a_group_and_a_program_of_before_has_none() {
    let seen = Seen::default();
    // SAFETY: handles from the functions themselves, literals, and a context that outlives the receiver.
    unsafe {
        let (me, you) = (tampu_bulk_alone(c"c".as_ptr(), c"A".as_ptr()), tampu_bulk_alone(c"c".as_ptr(), c"B".as_ptr()));
        let (stream, flow, calls) = (c"stream".as_ptr(), c"flow".as_ptr(), handler(&seen));
        let receiver = tampu_bulk_receiver_open(you, stream, flow, ptr::null(), ptr::null(), &calls, size_of::<HandlerOfC>());
        assert!(!receiver.is_null(), "{}", last_error());
        let settings = SettingsOfC {
            group: c"239.255.77.3".as_ptr(),
            group_interface: c"127.0.0.1".as_ptr(),
            group_ttl: 2,
            ..SettingsOfC::default()
        };
        // A caller of the first release does not know the later fields.
        for (size, goes_by) in [(size_of::<SettingsOfC>(), Transport::Multicast), (32, Transport::Shm)] {
            let sender = tampu_bulk_sender_open(me, stream, flow, &settings, size);
            assert!(!sender.is_null(), "{}", last_error());
            tampu_bulk_sender_connect(sender, tampu_bulk_receiver_target(receiver));
            assert_eq!(tampu_bulk_start(sender, ptr::null(), 0), 0, "{}", last_error());
            assert_eq!((*sender).transports(), [goes_by]);
            assert_eq!(tampu_bulk_send(sender, [7; 1000].as_ptr(), 1000), 0, "{}", last_error());
            assert_eq!(tampu_bulk_stop(sender, ptr::null_mut(), 0), 1, "{}", last_error());
            tampu_bulk_sender_close(sender);
            assert_eq!(std::mem::take(&mut *seen.bytes.lock().unwrap()), [7; 1000]);
            assert_eq!(tampu_bulk_receiver_part(receiver, 30_000), 1);
        }
        tampu_bulk_receiver_close(receiver);
        tampu_bulk_leave(me);
        tampu_bulk_leave(you);
    }
}

#[test]
fn the_stronger_protection_of_both_ends_holds() {
    let seen = Seen::default();
    // SAFETY: handles from the functions themselves, literals, and a context that outlives the receiver.
    unsafe {
        let (me, you) = (tampu_bulk_alone(c"c".as_ptr(), c"A".as_ptr()), tampu_bulk_alone(c"c".as_ptr(), c"B".as_ptr()));
        let (stream, flow) = (c"stream".as_ptr(), c"flow".as_ptr());
        // A program of the first release does not know the receiver's field.
        let (all, first) = (size_of::<HandlerOfC>(), 6 * size_of::<usize>());
        for (taken, size, given, agreed) in [(3, all, 1, "encrypted"), (0, all, 2, "authenticated"), (3, first, 0, "none")] {
            let calls = HandlerOfC { protection: taken, ..handler(&seen) };
            let receiver = tampu_bulk_receiver_open(you, stream, flow, ptr::null(), ptr::null(), &calls, size);
            assert!(!receiver.is_null(), "{}", last_error());
            let settings = SettingsOfC { protection: given, ..SettingsOfC::default() };
            let sender = tampu_bulk_sender_open(me, stream, flow, &settings, size_of::<SettingsOfC>());
            tampu_bulk_sender_connect(sender, tampu_bulk_receiver_target(receiver));
            assert_eq!(tampu_bulk_start(sender, ptr::null(), 0), 0, "{}", last_error());
            assert_eq!((*sender).protections(), [agreed]);
            assert_eq!(tampu_bulk_stop(sender, ptr::null_mut(), 0), 1, "{}", last_error());
            tampu_bulk_sender_close(sender);
            assert_eq!(tampu_bulk_receiver_part(receiver, 30_000), 1);
            tampu_bulk_receiver_close(receiver);
        }
        let odd = HandlerOfC { protection: 7, ..handler(&seen) };
        assert!(tampu_bulk_receiver_open(you, stream, flow, ptr::null(), ptr::null(), &odd, all).is_null());
        assert!(last_error().contains("the protection: invalid value '7'"), "{}", last_error());
        tampu_bulk_leave(me);
        tampu_bulk_leave(you);
    }
}

#[test]
fn what_is_null_or_odd_is_told_and_harmless() {
    let (stream, flow, null) = (c"s".as_ptr(), c"f".as_ptr(), ptr::null());
    let seen = Seen::default();
    // SAFETY: all functions accept NULL, and the handles are their own.
    unsafe {
        assert!(tampu_bulk_join(null).is_null() && tampu_bulk_alone(null, flow).is_null());
        assert_eq!(last_error(), "the domain's name is NULL");
        let me = tampu_bulk_alone(c"c".as_ptr(), c"A".as_ptr());
        assert!(tampu_bulk_sender_open(ptr::null(), stream, flow, ptr::null(), 0).is_null());
        assert_eq!(last_error(), "the participant is NULL");
        assert!(tampu_bulk_sender_open(me, c"a#b".as_ptr(), flow, ptr::null(), 0).is_null());
        assert!(last_error().contains("of a stream, a flow or a control"), "{}", last_error());
        for (odd, said) in [
            (SettingsOfC { transport: 9, ..SettingsOfC::default() }, "the transport: invalid value '9'"),
            (SettingsOfC { protection: 4, ..SettingsOfC::default() }, "the protection: invalid value '4'"),
            (SettingsOfC { protection: -2, ..SettingsOfC::default() }, "the protection: invalid value '-2'"),
            (SettingsOfC { throttle: f64::NAN, ..SettingsOfC::default() }, "the throttle: invalid value 'NaN'"),
            (SettingsOfC { throttle: -1.0, ..SettingsOfC::default() }, "the throttle: invalid value '-1'"),
            (SettingsOfC { window: u64::MAX, ..SettingsOfC::default() }, "the window: "),
            (SettingsOfC { transport: 4, ..SettingsOfC::default() }, "no multicast group is set"),
            (SettingsOfC { group: c"10.0.0.1".as_ptr(), ..SettingsOfC::default() }, "the address of one host"),
            (SettingsOfC { group_ttl: 1, ..SettingsOfC::default() }, "set a group too"),
            (
                SettingsOfC { group: c"239.255.77.3".as_ptr(), group_ttl: 256, ..SettingsOfC::default() },
                "the group's ttl: invalid value '256'",
            ),
            (
                SettingsOfC { group: c"239.255.77.3".as_ptr(), group_interface: c"10.0.0".as_ptr(), ..SettingsOfC::default() },
                "the group's interface: invalid value '10.0.0'",
            ),
        ] {
            assert!(tampu_bulk_sender_open(me, stream, flow, &odd, size_of::<SettingsOfC>()).is_null());
            assert!(last_error().contains(said), "{}", last_error());
        }
        let sender = tampu_bulk_sender_open(me, stream, flow, ptr::null(), 0);
        assert_eq!(tampu_bulk_sender_connect(sender, c"nowhere".as_ptr()), -1);
        assert!(last_error().contains("invalid target"), "{}", last_error());
        assert_eq!(tampu_bulk_sender_follow(sender), -1);
        assert!(last_error().contains("not on the bus"), "{}", last_error());
        assert_eq!((tampu_bulk_start(sender, ptr::null(), 3), last_error()), (-1, "the parameter is NULL".to_owned()));
        assert_eq!((tampu_bulk_send(sender, b"".as_ptr(), usize::MAX), tampu_bulk_sender_wait(sender, 1, 0)), (-1, 0));
        tampu_bulk_sender_close(sender);

        let (calls, size) = (handler(&seen), size_of::<HandlerOfC>());
        assert!(tampu_bulk_receiver_open(me, stream, flow, null, null, ptr::null(), 0).is_null());
        assert_eq!(last_error(), "the handler is NULL");
        for odd in [0, 40, size + 1] {
            assert!(tampu_bulk_receiver_open(me, stream, flow, null, null, &calls, odd).is_null());
            assert!(last_error().contains("the structure's size"), "{}", last_error());
        }
        assert!(tampu_bulk_receiver_open(me, stream, flow, c"here".as_ptr(), null, &calls, size).is_null());
        assert!(last_error().contains("listen at: invalid value 'here'"), "{}", last_error());
        let nobody = ptr::null_mut();
        assert_eq!((tampu_bulk_start(nobody, ptr::null(), 0), tampu_bulk_send(nobody, ptr::null(), 0)), (-1, -1));
        assert_eq!((tampu_bulk_stop(nobody, ptr::null_mut(), 0), tampu_bulk_reset(nobody)), (-1, -1));
        assert_eq!((tampu_bulk_sender_connect(nobody, null), tampu_bulk_sender_follow(nobody)), (-1, -1));
        assert_eq!((tampu_bulk_sender_wait(nobody, 1, 1), last_error()), (-1, "the sender is NULL".to_owned()));
        let none = ptr::null_mut();
        assert!(tampu_bulk_receiver_target(none).is_null() && tampu_bulk_receiver_part(none, 1) == -1);
        assert_eq!(tampu_bulk_receiver_close(none), 0);
        tampu_bulk_sender_close(nobody);
        tampu_bulk_leave(me);
        tampu_bulk_leave(ptr::null_mut());
        tampu_bulk_explain(null);
    }
}

#[test]
fn control_needs_the_bus_and_names_what_is_missing() {
    // SAFETY: handles from the functions themselves, and literals.
    unsafe {
        let me = tampu_bulk_alone(c"c".as_ptr(), c"A".as_ptr());
        let (stream, flow, null) = (c"stream".as_ptr(), c"flow".as_ptr(), ptr::null());
        let sender = tampu_bulk_sender_open(me, stream, flow, ptr::null(), 0);
        assert!(tampu_bulk_control_sender(sender, c"corr".as_ptr(), None, ptr::null_mut()).is_null());
        assert!(last_error().contains("'A' is not on the bus"), "{}", last_error());
        assert!(tampu_bulk_control_sender(sender, null, None, ptr::null_mut()).is_null());
        assert_eq!(last_error(), "the control's name is NULL");
        assert!(tampu_bulk_control_sender(ptr::null(), null, None, ptr::null_mut()).is_null());
        let seen = Seen::default();
        let (calls, size) = (handler(&seen), size_of::<HandlerOfC>());
        assert!(tampu_bulk_control_receiver(me, c"a".as_ptr(), stream, flow, null, null, &calls, size).is_null());
        assert!(last_error().contains("not on the bus"), "{}", last_error());
        assert!(tampu_bulk_control_receiver(me, c"a#b".as_ptr(), stream, flow, null, null, &calls, size).is_null());
        assert!(last_error().contains("of a stream, a flow or a control"), "{}", last_error());
        assert_eq!(tampu_bulk_control_start(me, c"a".as_ptr(), null, null, null, 1), -1);
        assert_eq!(tampu_bulk_control_pace(me, c"a".as_ptr(), c"a#b".as_ptr(), 0.0, 1), -1);
        assert_eq!(
            (tampu_bulk_control_stop(ptr::null(), null, null, 1), last_error()),
            (-1, "the participant is NULL".to_owned())
        );
        assert!(tampu_bulk_control_ask(me, null, null, 1).is_null());
        assert_eq!((tampu_bulk_control_end(ptr::null_mut()), tampu_bulk_control_open_own(ptr::null())), (0, -1));
        assert_eq!(
            (tampu_bulk_control_begin_work(ptr::null()).is_null(), last_error()),
            (true, "the control is NULL".to_owned())
        );
        tampu_bulk_control_end_work(ptr::null_mut());
        tampu_bulk_control_free(ptr::null_mut());
        tampu_bulk_sender_close(sender);
        tampu_bulk_leave(me);
    }
}
