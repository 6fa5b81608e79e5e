package org.tampu.internal.call;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.internal.cdr.CdrWriter;
import org.tampu.internal.ring.Incarnation;

/**
 * A record that no call site made: one of an error chain, one with fields that a call site does not have, or one for
 * whose site the dictionary has no room.
 *
 * <p>It is stored as a log batch of this record alone ({@code spec/wire/log-batch.md}).
 */
final class WholeRecord {
    long time;
    int level;
    int priority = -1;
    String message = "";
    String file = "";
    int line = -1;
    String routine = "";
    String host = "";
    String process = "";
    String thread = "";
    String uri = "";
    String stackId = "";
    int stackLevel = -1;
    /** Trace and span of the record (W3C Trace Context); empty for none. */
    byte[] traceId = {};
    byte[] spanId = {};
    Voice voice = new Voice("");
    /** Values beside the message, in order; a name may be there several times. */
    List<Map.Entry<String, String>> data = List.of();

    /** Names the place in the code. */
    void at(StackTraceElement where) {
        if (where != null) {
            file = where.getFileName() == null ? "" : where.getFileName();
            line = where.getLineNumber() > 0 ? where.getLineNumber() : -1;
            routine = where.getClassName() + "." + where.getMethodName();
        }
    }

    /** Takes the trace or the span of a named value, as the node does for calls; returns whether it was one. */
    boolean takeId(String name, String value) {
        int bytes = name.equals("trace_id") ? 16 : name.equals("span_id") ? 8 : 0;
        boolean isTaken = bytes == 16 ? traceId.length > 0 : spanId.length > 0;
        if (bytes == 0 || isTaken || value.length() != 2 * bytes || value.chars().allMatch(digit -> digit == '0')) {
            return false;
        }
        byte[] id = new byte[bytes];
        for (int at = 0; at < value.length(); at++) {
            char letter = value.charAt(at);
            int digit = letter < 128 ? Character.digit(letter, 16) : -1;
            if (digit < 0) {
                return false;
            }
            id[at / 2] = (byte) (id[at / 2] << 4 | digit);
        }
        if (bytes == 16) {
            traceId = id;
        } else {
            spanId = id;
        }
        return true;
    }

    /** Returns the payload of a ring's record. */
    byte[] toPayload() {
        byte[] batch = toBatch(null, 0, 0);
        return ByteBuffer.allocate(8 + batch.length).order(ByteOrder.LITTLE_ENDIAN).putInt(0).putInt(0).put(batch).array();
    }

    /** Returns a batch of this record; without an incarnation it has no id. */
    byte[] toBatch(Incarnation incarnation, int ring, long number) {
        Map<String, Integer> strings = new LinkedHashMap<>();
        CdrWriter out = new CdrWriter();
        int batch = out.begin();
        int records = out.begin();
        out.u32(1);
        int record = out.begin();
        out.u64(time);
        out.u64(number);
        out.u32(ring);
        out.u32(0);
        out.u8(level);
        out.u8(priority >= 0 ? 1 : 0);
        if (priority >= 0) {
            out.u8(priority);
        }
        extras(out);
        out.string(message);
        // The origin's texts come first, as in the batches of other writers.
        Origin origin = new Origin(strings);
        int values = out.begin();
        out.u32(data.size());
        for (var datum : data) {
            out.string(datum.getValue());
            out.u32(index(strings, datum.getKey()));
        }
        out.end(values);
        out.end(record);
        out.end(records);
        incarnations(out, incarnation);
        int table = out.begin();
        out.u32(strings.size());
        strings.keySet().forEach(out::string);
        out.end(table);
        int origins = out.begin();
        out.u32(1);
        origin.write(out, incarnation != null);
        out.end(origins);
        out.end(batch);
        return out.toBytes();
    }

    private void extras(CdrWriter out) {
        boolean any = !stackId.isEmpty() || stackLevel >= 0 || traceId.length + spanId.length > 0;
        out.u8(any ? 1 : 0);
        if (any) {
            out.u8(0);
            out.u8(stackLevel >= 0 ? 1 : 0);
            if (stackLevel >= 0) {
                out.u32(stackLevel);
            }
            out.string(stackId);
            out.string("");
            for (byte[] id : List.of(traceId, spanId)) {
                out.u32(id.length);
                out.raw(id);
            }
            out.u8(0);
            int attributes = out.begin();
            out.u32(0);
            out.end(attributes);
        }
    }

    private static void incarnations(CdrWriter out, Incarnation incarnation) {
        int lives = out.begin();
        out.u32(incarnation == null ? 0 : 1);
        if (incarnation != null) {
            out.u32(incarnation.boot());
            out.u32(incarnation.pid());
            out.u64(incarnation.start());
        }
        out.end(lives);
    }

    /** Returns the number of a string in the table, from 1; 0 for the empty string. */
    private static int index(Map<String, Integer> strings, String text) {
        if (text.isEmpty()) {
            return 0;
        }
        int next = strings.size() + 1;
        Integer known = strings.putIfAbsent(text, next);
        return known == null ? next : known;
    }

    /** The record's origin as numbers of strings, in the order of {@code log.idl}. */
    private final class Origin {
        private final int[] fields;
        private final int[] audiences;

        Origin(Map<String, Integer> strings) {
            fields = List.of(voice.logger(), file, routine, host, process, thread, voice.context(), voice.sourceObject(),
                    voice.array(), voice.antenna(), uri, voice.runId()).stream().mapToInt(text -> index(strings, text)).toArray();
            audiences = voice.audiences().stream().mapToInt(text -> index(strings, text)).toArray();
        }

        void write(CdrWriter out, boolean hasId) {
            int begin = out.begin();
            out.u8(line >= 0 ? 1 : 0);
            if (line >= 0) {
                out.u32(line);
            }
            out.u32(hasId ? 1 : 0);
            for (int field : fields) {
                out.u32(field);
            }
            out.u32(audiences.length);
            for (int audience : audiences) {
                out.u32(audience);
            }
            out.end(begin);
        }
    }
}
