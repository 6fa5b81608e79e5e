//! Metrics of the gateway.

use super::text::Text;
use crate::gateway::GatewayReport;

/// Appends the metrics of a gateway.
pub(super) fn gateway(text: &mut Text, report: &GatewayReport) {
    text.family("tampu_gateway_sessions", "gauge", "Sessions of programs that are not on the bus, by their connection.");
    text.value(&[("connection", "open")], report.connected);
    text.value(&[("connection", "lost")], report.detached);
    let gauges: [(&str, &str, u64); 6] = [
        ("tampu_gateway_subscriptions", "Subscriptions of all sessions.", report.subscriptions as u64),
        ("tampu_gateway_publishers", "Publishers of all sessions.", report.publishers as u64),
        ("tampu_gateway_questions", "Questions of sessions that wait for their answer.", report.questions as u64),
        ("tampu_gateway_services", "Services that clients answer.", report.services as u64),
        ("tampu_gateway_passed", "Questions of the bus that wait for a client's answer.", report.passed as u64),
        ("tampu_gateway_unacknowledged_bytes", "Bytes that clients have not acknowledged.", report.kept_bytes as u64),
    ];
    for (name, help, value) in gauges {
        text.family(name, "gauge", help).value(&[], value);
    }
    let counters: [(&str, &str, u64); 7] = [
        ("tampu_gateway_frames_total", "Numbered frames of clients.", report.frames),
        ("tampu_gateway_received_bytes_total", "Bytes of clients' frames.", report.received_bytes),
        ("tampu_gateway_resumed_total", "Sessions that were resumed.", report.resumed),
        ("tampu_gateway_refused_total", "Connections and requests that were refused.", report.refused),
        ("tampu_gateway_passed_total", "Questions of the bus that were passed on to clients.", report.passed_total),
        ("tampu_gateway_unanswered_total", "Such questions that a client has not answered in time.", report.expired),
        ("tampu_gateway_dropped_total", "Times at which a full queue dropped its oldest events.", report.dropped),
    ];
    for (name, help, value) in counters {
        text.family(name, "counter", help).value(&[], value);
    }
}
