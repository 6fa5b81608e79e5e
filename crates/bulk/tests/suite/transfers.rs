// Transfers from senders to receivers on loopback, on free ports: the arrived data, its order, and the reports of failures. Each
// file that includes this one names its transport.

use std::{sync::mpsc, time::Duration};

use bytes::Bytes;
use support::{Told, WAIT, bytes_of, pair, pattern, receiver, sender};
use tampu_bulk::{
    Sender,
    handler::CallbackError,
    message::FaultKind,
    sender::{Acknowledge, Go, SendError, Slow},
    state::{CutCause, LinkStatus},
};

#[test]
fn a_transfer_has_its_parameter_first_every_byte_once_and_its_stop_last() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    let flow = &sender.flows()[0];
    for (round, length) in [0usize, 1, 47, 48, 65_536, 262_144, 262_145, 5_000_000].into_iter().enumerate() {
        let parameter = format!("transfer {round}").into_bytes();
        let started = flow.start(&parameter).unwrap();
        assert_eq!((started.transfer, started.receivers, started.from), (round as u64 + 1, 1, 0));
        let data = pattern(round as u64, length);
        flow.send(data.clone()).unwrap();
        flow.send(Bytes::new()).unwrap();
        let report = flow.stop().unwrap();
        assert!(report.complete(), "{report:?}");
        assert_eq!((report.bytes, report.deliveries[0].acknowledged), (length as u64, length as u64));
        let told = told.take_until_stop();
        assert_eq!(told.first(), Some(&Told::Start(parameter)));
        assert!(matches!(told.last(), Some(Told::Stop { complete: true, stopped: true, .. })), "{told:?}");
        assert_eq!(bytes_of(&told), data);
    }
}

#[test]
fn calls_in_the_wrong_order_are_refused_at_the_sender() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    let flow = &sender.flows()[0];
    assert!(matches!(flow.send(Bytes::new()), Err(SendError::Misuse(_))));
    assert!(matches!(flow.stop(), Err(SendError::Misuse(_))));
    flow.start(b"").unwrap();
    assert!(matches!(flow.start(b""), Err(SendError::Misuse(_))));
    assert!(matches!(flow.start(&vec![0; 1 << 20]), Err(SendError::Misuse(_))));
    flow.send(Bytes::from_static(b"abc")).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert!(matches!(flow.stop(), Err(SendError::Misuse(_))));
    assert!(matches!(flow.start(&vec![0; 1 << 20]), Err(SendError::Misuse(_))), "a parameter is one frame");
    assert_eq!(bytes_of(&told.take_until_stop()), b"abc");
}

#[test]
fn a_reset_ends_what_is_under_way_and_the_next_transfer_is_whole() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    let flow = &sender.flows()[0];
    flow.reset();
    flow.start(b"one").unwrap();
    flow.send(pattern(1, 100_000)).unwrap();
    flow.reset();
    flow.start(b"two").unwrap();
    flow.send(pattern(2, 1000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    let first = told.take_until_stop();
    assert_eq!(first.first(), Some(&Told::Start(b"one".to_vec())));
    assert!(matches!(first.last(), Some(Told::Reset)), "{first:?}");
    let second = told.take_until_stop();
    assert_eq!(bytes_of(&second), pattern(2, 1000));
}

#[test]
fn a_reset_takes_nothing_from_the_transfers_before_it() {
    let (quick, _) = receiver(|flow| flow.repair = WAIT, |_| ());
    let (slow, told) = receiver(|flow| flow.repair = WAIT, |_| ());
    let sender = sender(|flow| {
        flow.acknowledge = Acknowledge::Never;
        flow.receivers = 2;
    });
    sender.connect(&quick.target()).unwrap();
    sender.connect(&slow.target()).unwrap();
    let flow = &sender.flows()[0];
    told.block(true);
    // More than the sockets hold, so that part of the data is unsent at the end; a group is as fast as its slowest member.
    let length = if crate::WAY == tampu_bulk::message::Transport::Multicast { 500_000 } else { 20_000_000 };
    flow.start(b"one").unwrap();
    flow.send(pattern(1, length)).unwrap();
    flow.stop().unwrap();
    flow.reset();
    flow.start(b"two").unwrap();
    flow.send(pattern(2, 1000)).unwrap();
    flow.reset();
    told.block(false);
    let seen = told.take_until_stop();
    assert!(matches!(seen.last(), Some(Told::Stop { complete: true, .. })), "{:?}", seen.last());
    assert!(bytes_of(&seen) == pattern(1, length));
    let seen = told.take_until_stop();
    assert_eq!((&seen[0], seen.last()), (&Told::Start(b"two".to_vec()), Some(&Told::Reset)));
    drop((quick, slow));
}

#[test]
fn a_sender_that_is_closed_beside_a_call_ends_the_call_and_the_transfer() {
    let (_receiver, sender, told) = pair(|flow| flow.repair = WAIT, |flow| flow.window = 1 << 20);
    let flow = sender.flows()[0].clone();
    flow.start(b"").unwrap();
    told.block(true);
    let calling = flow.clone();
    let call = std::thread::spawn(move || (0..).find_map(|round| calling.send(pattern(round, 300_000)).err()));
    support::eventually(|| flow.state().waits.is_some());
    let closing = std::thread::spawn(move || drop(sender));
    assert!(matches!(call.join().unwrap(), Some(SendError::Closed)));
    told.block(false);
    closing.join().unwrap();
    let seen = told.take_until_stop();
    assert!(matches!(seen.last(), Some(Told::Reset)), "{:?}", seen.last());
    let sent: Vec<u8> = (0..seen.len() as u64).flat_map(|round| pattern(round, 300_000)).collect();
    let came = bytes_of(&seen);
    assert!(!came.is_empty() && sent.starts_with(&came));
    assert!(matches!(flow.send(Bytes::new()), Err(SendError::Misuse(_) | SendError::Closed)));
    flow.reset();
}

#[test]
fn a_failing_callback_is_told_to_both_ends_and_gets_its_stop() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    let flow = &sender.flows()[0];
    told.fail_data(Some(CallbackError::failed("no room on the table")));
    flow.start(b"").unwrap();
    flow.send(pattern(3, 600_000)).unwrap();
    let report = flow.stop().unwrap();
    let fault = report.deliveries[0].faults.iter().find(|fault| fault.kind == FaultKind::CallbackFailed).unwrap();
    assert_eq!(fault.text, "no room on the table");
    let seen = told.take_until_stop();
    assert!(seen.contains(&Told::Fault(FaultKind::CallbackFailed)), "{seen:?}");

    told.fail_data(Some(CallbackError::give_up("disk full")));
    flow.start(b"").unwrap();
    flow.send(pattern(3, 600_000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(!report.complete());
    assert!(report.deliveries[0].faults.iter().any(|fault| fault.kind == FaultKind::GaveUp));
    let seen = told.take_until_stop();
    assert!(matches!(seen.last(), Some(Told::Stop { complete: false, stopped: true, .. })), "{seen:?}");

    told.fail_data(None);
    told.panic_at_start(true);
    flow.start(b"").unwrap();
    let report = flow.stop().unwrap();
    assert!(report.deliveries[0].faults.iter().any(|fault| fault.text.contains("panicked")), "{report:?}");
}

#[test]
fn a_slow_callback_is_told() {
    let (_receiver, sender, told) = pair(|flow| flow.callback_limit = Duration::from_millis(1), |_| ());
    told.delay_data(Duration::from_millis(5));
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    flow.send(pattern(4, 10)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.deliveries[0].faults.iter().any(|fault| fault.kind == FaultKind::CallbackSlow), "{report:?}");
    assert!(report.complete(), "slow is not incomplete");
    let seen = told.take_until_stop();
    assert!(seen.contains(&Told::Fault(FaultKind::CallbackSlow)));
}

#[test]
fn what_a_receiver_has_already_is_not_sent_again() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    let flow = &sender.flows()[0];
    let data = pattern(5, 900_000);
    told.has(400_000);
    assert_eq!(flow.start(b"").unwrap().from, 400_000);
    flow.begin_at(400_000).unwrap();
    flow.send(data.slice(400_000..)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(bytes_of(&told.take_until_stop()), data.slice(400_000..));
    // A sender may ignore it and send all; the receiver's handler gets only the missing part.
    flow.start(b"").unwrap();
    flow.send(data.clone()).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(bytes_of(&told.take_until_stop()), data.slice(400_000..));
}

#[test]
fn two_senders_of_one_flow_are_not_possible() {
    let (receiver, first, told) = pair(|_| (), |_| ());
    first.flows()[0].start(b"mine").unwrap();
    let second = sender(|_| ());
    second.connect(&receiver.target()).unwrap();
    let status = || second.state().flows[0].receivers[0].clone();
    support::eventually(|| status().status == LinkStatus::Refused);
    assert!(status().why.contains("another sender has the flow"), "{}", status().why);
    assert!(matches!(second.flows()[0].start(b""), Err(SendError::NoReceiver { wanted: 1, here: 0, .. })));
    // After the first has left in order, the second gets the flow.
    drop(first);
    assert!(second.flows()[0].wait_for(1, WAIT));
    second.flows()[0].start(b"ours").unwrap();
    assert!(second.flows()[0].stop().unwrap().complete());
    assert!(matches!(told.take_until_stop().last(), Some(Told::Reset)), "the first was told to end");
    assert_eq!(told.take_until_stop()[0], Told::Start(b"ours".to_vec()));
}

#[test]
fn strangers_and_flows_that_are_not_there_are_refused_with_the_reason() {
    let (receiver, _told) = receiver(|_| (), |_| ());
    let mut target = receiver.target();
    let other = sender(|flow| flow.name = "elsewhere".parse().unwrap());
    other.connect(&target).unwrap();
    support::eventually(|| other.state().flows[0].receivers[0].why.contains("no such flow"));
    target.token.0[0] ^= 1;
    let stranger = sender(|_| ());
    stranger.connect(&target).unwrap();
    support::eventually(|| stranger.state().flows[0].receivers[0].why.contains("the token or the domain is another"));
    support::eventually(|| receiver.state().refused >= 2);
}

#[test]
fn several_receivers_get_the_same_and_a_late_one_begins_with_the_next_start() {
    let (one, told_one) = receiver(|_| (), |_| ());
    let (two, told_two) = receiver(|_| (), |_| ());
    let (late, told_late) = receiver(|_| (), |_| ());
    let sender = sender(|flow| flow.receivers = 2);
    sender.connect(&one.target()).unwrap();
    sender.connect(&two.target()).unwrap();
    let flow = &sender.flows()[0];
    assert_eq!(flow.start(b"first").unwrap().receivers, 2);
    flow.send(pattern(6, 300_000)).unwrap();
    sender.connect(&late.target()).unwrap();
    assert!(flow.wait_for(3, WAIT));
    flow.send(pattern(7, 300_000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete() && report.deliveries.len() == 2, "{report:?}");
    let expected = [pattern(6, 300_000), pattern(7, 300_000)].concat();
    for told in [&told_one, &told_two] {
        assert_eq!(bytes_of(&told.take_until_stop()), expected);
    }
    assert_eq!(flow.start(b"second").unwrap().receivers, 3);
    assert_eq!(flow.stop().unwrap().deliveries.len(), 3);
    assert_eq!(
        told_late.take_until_stop().iter().find(|one| !matches!(one, Told::Connected)),
        Some(&Told::Start(b"second".to_vec()))
    );
}

#[test]
fn a_slow_receiver_is_cut_and_the_others_get_all() {
    slow_receiver(Slow::Cut);
}

#[test]
fn a_slow_receiver_that_is_skipped_knows_exactly_what_it_missed() {
    slow_receiver(Slow::Skip);
}

fn slow_receiver(policy: Slow) {
    let (good, told_good) = receiver(|_| (), |_| ());
    let (slow, told_slow) = receiver(|_| (), |_| ());
    let sender = sender(|flow| {
        flow.receivers = 2;
        flow.window = 1 << 20;
        flow.wait = Duration::from_millis(300);
        flow.slow = policy;
        flow.ack_wait = WAIT;
    });
    sender.connect(&good.target()).unwrap();
    sender.connect(&slow.target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    told_slow.block(true);
    let length = 512 << 10;
    for round in 0..100 {
        flow.send(pattern(round, length)).unwrap();
    }
    let worst = sender.state().flows[0].receivers.iter().map(|link| link.status).find(|status| *status != LinkStatus::Live);
    let expected = if policy == Slow::Cut { LinkStatus::Cut } else { LinkStatus::Lagging };
    assert!(worst.is_some(), "nobody was marked");
    if policy == Slow::Skip {
        assert_eq!(worst, Some(expected));
    }
    told_slow.block(false);
    let report = flow.stop().unwrap();
    let sent: Vec<u8> = (0..100).flat_map(|round| pattern(round, length)).collect();
    assert!(bytes_of(&told_good.take_until_stop()) == sent, "the good one has all");
    let complete: Vec<bool> = report.deliveries.iter().map(|delivery| delivery.complete).collect();
    assert_eq!(complete.iter().filter(|complete| **complete).count(), 1, "{report:?}");
    let told = told_slow.take_until_stop();
    match told.last() {
        Some(Told::Stop { complete: false, stopped: true, lost, .. }) if policy == Slow::Skip => {
            // The delivered and the lost ranges join without a gap.
            let mut pieces = support::pieces(&told);
            // A frame overwritten while the handler had it was delivered, and then reported as lost.
            let torn = |from, to| lost.iter().any(|lost| lost.cause == Cause::Overwritten && lost.from <= from && lost.to >= Some(to));
            pieces.retain(|(from, to, _)| !torn(*from, *to));
            pieces.extend(lost.iter().map(|lost| (lost.from, lost.to.unwrap(), None)));
            pieces.sort_by_key(|piece| (piece.0, piece.1));
            let mut at = 0;
            for (from, to, bytes) in pieces {
                assert_eq!(from, at);
                assert!(bytes.is_none_or(|bytes| bytes == sent[from as usize..to as usize]));
                at = to;
            }
            assert_eq!(at, sent.len() as u64);
            assert!(!lost.is_empty() && lost.iter().all(|lost| crate::CAUSES.contains(&lost.cause)), "{lost:?}");
            let delivery = report.deliveries.iter().find(|delivery| !delivery.complete).unwrap();
            assert_eq!(&delivery.lost, lost, "both ends say the same");
        }
        Some(Told::Reset) if policy == Slow::Cut => {}
        Some(Told::Stop { stopped: false, .. }) if policy == Slow::Cut => {}
        other => panic!("{other:?}"),
    }
    // The receiver takes part in the next transfer.
    assert!(flow.wait_for(2, WAIT));
    let started = flow.start(b"next").unwrap();
    assert_eq!(started.receivers, 2);
    assert!(flow.stop().unwrap().complete());
}

#[test]
fn nobody_left_is_an_error_and_not_silence() {
    let (only, told) = receiver(|_| (), |_| ());
    let sender = sender(|flow| {
        flow.window = 1 << 20;
        flow.wait = Duration::from_millis(200);
    });
    sender.connect(&only.target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    told.block(true);
    let error = (0..1000).find_map(|round| flow.send(pattern(round, 512 << 10)).err());
    assert!(matches!(&error, Some(SendError::NobodyLeft { why, .. }) if why.contains("took nothing")), "{error:?}");
    told.block(false);
}

#[test]
fn a_sender_without_a_receiver_says_so() {
    let sender = sender(|flow| flow.connect_wait = Duration::from_millis(50));
    let flow = &sender.flows()[0];
    assert!(matches!(flow.start(b""), Err(SendError::NoReceiver { wanted: 1, here: 0, .. })));
    assert!(matches!(flow.send(Bytes::new()), Err(SendError::Misuse(_))), "nothing was started");
}

#[test]
fn checksums_are_made_when_one_end_asks_and_nothing_is_lost_by_them() {
    let (_receiver, sender, told) = pair(|flow| flow.checked = true, |_| ());
    let flow = &sender.flows()[0];
    flow.start(b"parameter").unwrap();
    flow.send(pattern(8, 1_000_000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(bytes_of(&told.take_until_stop()), pattern(8, 1_000_000));
}

#[test]
fn sending_without_acknowledgements_returns_at_once_and_all_arrives() {
    let (_receiver, sender, told) = pair(|_| (), |flow| flow.acknowledge = Acknowledge::Never);
    let flow = &sender.flows()[0];
    assert!(flow.wait_for(1, WAIT));
    for round in 0..20 {
        flow.start(b"").unwrap();
        flow.send(pattern(round, 200_000)).unwrap();
        flow.stop().unwrap();
    }
    for round in 0..20 {
        assert_eq!(bytes_of(&told.take_until_stop()), pattern(round, 200_000));
    }
}

#[test]
fn every_send_can_wait_for_its_receivers() {
    let (_receiver, sender, told) = pair(|_| (), |flow| flow.acknowledge = Acknowledge::EverySend);
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    for round in 1..=20u64 {
        flow.send(pattern(round, 1000)).unwrap();
        assert_eq!(flow.state().receivers[0].acknowledged, round * 1000, "done with when send returns");
    }
    assert!(flow.stop().unwrap().complete());
    assert_eq!(bytes_of(&told.take_until_stop()).len(), 20_000);
}

#[test]
fn a_callback_sends_at_an_interval_until_it_has_done() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    let (done, finished) = mpsc::channel();
    let mut round = 0;
    let periodic = flow
        .every(Duration::from_millis(1), move |flow| {
            round += 1;
            flow.send(pattern(round, 10)).unwrap();
            if round < 5 {
                return Go::On;
            }
            flow.stop().unwrap();
            done.send(()).unwrap();
            Go::Done
        })
        .unwrap();
    finished.recv_timeout(WAIT).unwrap();
    assert_eq!(bytes_of(&told.take_until_stop()).len(), 50);
    support::eventually(|| periodic.is_done());
}

#[test]
fn a_sender_that_leaves_inside_a_transfer_has_it_ended() {
    let (_receiver, sender, told) = pair(|_| (), |_| ());
    sender.flows()[0].start(b"").unwrap();
    sender.flows()[0].send(pattern(9, 1000)).unwrap();
    drop::<Sender>(sender);
    let seen = told.take_until_stop();
    assert!(matches!(seen.last(), Some(Told::Reset)), "{seen:?}");
    assert_eq!(bytes_of(&seen), pattern(9, 1000));
}

#[test]
fn a_taken_port_is_told_by_its_address() {
    let (one, _) = receiver(|_| (), |_| ());
    let address = one.address();
    let error = support::open_at(address).err().unwrap();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn a_throttle_is_kept_without_counting_time() {
    let (_receiver, sender, _told) = pair(|_| (), |flow| flow.throttle = Some(50e6));
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    let begin = std::time::Instant::now();
    flow.send(pattern(1, 5_000_000)).unwrap();
    // Never faster; the machine decides how much slower.
    assert!(begin.elapsed() >= Duration::from_millis(90));
    assert!(flow.stop().unwrap().complete());
}

#[test]
fn a_receiver_that_is_slow_with_short_frames_is_cut_too() {
    let (good, told_good) = receiver(|_| (), |_| ());
    let (slow, told_slow) = receiver(|_| (), |_| ());
    let sender = sender(|flow| {
        flow.receivers = 2;
        flow.wait = Duration::from_millis(300);
    });
    sender.connect(&good.target()).unwrap();
    sender.connect(&slow.target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    // The receiver makes progress all the time, so it is never stuck.
    told_slow.delay_data(Duration::from_millis(1));
    // The receiver comes back at once; the reason of its cut stays reported.
    let cut = || flow.state().receivers.iter().find_map(|link| link.cut);
    let mut sent = Vec::new();
    while cut().is_none() {
        assert!(sent.len() < 100_000_000, "nobody was cut: {:?}", flow.state());
        for _ in 0..1000 {
            let block = pattern(sent.len() as u64, 50);
            sent.extend_from_slice(&block);
            flow.send(block).unwrap();
        }
    }
    assert_eq!(cut(), Some(CutCause::Slow));
    told_slow.delay_data(Duration::ZERO);
    let report = flow.stop().unwrap();
    assert_eq!(report.deliveries.iter().filter(|delivery| delivery.complete).count(), 1, "{report:?}");
    assert!(bytes_of(&told_good.take_until_stop()) == sent);
}
