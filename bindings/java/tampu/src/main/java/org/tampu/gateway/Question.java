package org.tampu.gateway;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import org.tampu.internal.gateway.AnsweredService;
import org.tampu.internal.json.Json;

/** A question of the bus, which the hub has passed on. The hub has checked the rights of the asking principal. */
public final class Question {
    /** Longest content of a part of JSON, in bytes. */
    private static final int PART = 1_000_000;

    private final AnsweredService service;
    private final long number;
    private final Duration time;
    private final String asker;
    private final byte[] octets;
    private volatile boolean cancelled;

    /** Makes a question, for the other packages of this module. */
    @SuppressWarnings("exports")
    public Question(AnsweredService service, long number, Duration time, String asker, byte[] octets) {
        this.service = service;
        this.number = number;
        this.time = time;
        this.asker = asker;
        this.octets = octets;
    }

    /** Returns the question as sent; empty means {@code {}} for services with JSON. */
    public byte[] octets() {
        return octets.clone();
    }

    /** Returns the question as a text. */
    public String text() {
        return new String(octets, StandardCharsets.UTF_8);
    }

    /** Returns the asking principal as a rule names it: {@code local}, {@code key}, {@code host:NAME}. */
    public String asker() {
        return asker;
    }

    /** Returns the time for the answer, from the moment at which the hub sent the question. */
    public Duration time() {
        return time;
    }

    /** Returns the incarnation of the session, which the answer has as its process. */
    public String process() {
        return service.incarnation();
    }

    /** Returns true once nobody reads the answer: its time is over, its asker or the session is gone. */
    public boolean isCancelled() {
        return cancelled;
    }

    /** Marks it as cancelled, for the other packages of this module. */
    public void cancel() {
        cancelled = true;
    }

    /** Sends one part of the answer. Returns false if nobody reads it. */
    public boolean part(byte[] content) throws GatewayException {
        return service.answer(this, number, 0, content);
    }

    /** Sends a value as JSON, cut into parts if it is long. Returns false if nobody reads it. */
    public boolean json(Object value) throws GatewayException {
        byte[] text = Json.write(value).getBytes(StandardCharsets.UTF_8);
        for (int at = 0; at < text.length; at += PART) {
            if (!part(Arrays.copyOfRange(text, at, Math.min(text.length, at + PART)))) {
                return false;
            }
        }
        return true;
    }
}
