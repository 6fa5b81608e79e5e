package org.tampu.log;

import java.nio.ByteBuffer;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.tampu.internal.cdr.CdrReader;

/** Reads log batches ({@code spec/wire/log-batch.md}). */
final class LogBatchReader {
    /** A record whose texts are still numbers: the tables stand behind the records. */
    private static final class Raw {
        private long time;
        private long number;
        private int ring;
        private int origin;
        private int level;
        private Integer priority;
        private Long received;
        private Integer stackLevel;
        private String stackId = "";
        private String logId = "";
        private String message;
        private final List<String> values = new ArrayList<>();
        private final List<Integer> names = new ArrayList<>();
    }

    private record Origin(Integer line, int incarnation, int[] texts, int[] audiences) {}

    private final CdrReader in;
    private final List<String> incarnations = new ArrayList<>();
    private final List<String> strings = new ArrayList<>();
    private final List<Origin> origins = new ArrayList<>();

    private LogBatchReader(CdrReader in) {
        this.in = in;
    }

    /**
     * Reads all records of a batch.
     *
     * @throws IllegalArgumentException for bytes that are not a batch
     */
    static List<StoredRecord> read(byte[] batch) {
        return new LogBatchReader(new CdrReader(ByteBuffer.wrap(batch))).read();
    }

    private List<StoredRecord> read() {
        in.open();
        int outer = in.enter();
        List<Raw> raws = new ArrayList<>();
        for (int left = in.count(40); left > 0; left--) {
            raws.add(record());
        }
        in.close(outer);
        outer = in.enter();
        for (int left = in.count(16); left > 0; left--) {
            incarnations.add(String.format("%08x-%08x-%016x", in.u32(), in.u32(), in.u64()));
        }
        in.close(outer);
        outer = in.enter();
        for (int left = in.count(5); left > 0; left--) {
            strings.add(in.string());
        }
        in.close(outer);
        outer = in.enter();
        for (int left = in.count(60); left > 0; left--) {
            origins.add(origin());
        }
        in.close(outer);
        return raws.stream().map(this::complete).toList();
    }

    private Raw record() {
        int outer = in.enter();
        Raw raw = new Raw();
        raw.time = in.u64();
        raw.number = in.u64();
        raw.ring = in.u32();
        raw.origin = in.u32();
        raw.level = in.u8();
        raw.priority = in.u8() == 0 ? null : (Integer) in.u8();
        if (in.u8() != 0) {
            extras(raw);
        }
        raw.message = in.string();
        in.length();
        for (int left = in.count(9); left > 0; left--) {
            raw.values.add(in.string());
            raw.names.add(in.u32());
        }
        in.close(outer);
        return raw;
    }

    private void extras(Raw raw) {
        raw.received = in.u8() == 0 ? null : (Long) in.u64();
        raw.stackLevel = in.u8() == 0 ? null : (Integer) in.u32();
        raw.stackId = in.string();
        raw.logId = in.string();
        // Trace and span.
        in.raw(in.count(1));
        in.raw(in.count(1));
        if (in.u8() != 0) {
            in.u32();
            in.u32();
            in.u32();
        }
        in.length();
        for (int left = in.count(9); left > 0; left--) {
            in.string();
            in.u32();
        }
    }

    private Origin origin() {
        int outer = in.enter();
        Integer line = in.u8() == 0 ? null : (Integer) in.u32();
        int incarnation = in.u32();
        int[] texts = new int[12];
        for (int at = 0; at < texts.length; at++) {
            texts[at] = in.u32();
        }
        int[] audiences = new int[in.count(4)];
        for (int at = 0; at < audiences.length; at++) {
            audiences[at] = in.u32();
        }
        in.close(outer);
        return new Origin(line, incarnation, texts, audiences);
    }

    private String text(int number) {
        if (number < 0 || number > strings.size()) {
            throw new IllegalArgumentException("string " + number + " of a table of " + strings.size());
        }
        return number == 0 ? "" : strings.get(number - 1);
    }

    private StoredRecord complete(Raw raw) {
        if (raw.origin < 0 || raw.origin >= origins.size()) {
            throw new IllegalArgumentException("origin " + raw.origin + " of a table of " + origins.size());
        }
        Origin origin = origins.get(raw.origin);
        if (origin.incarnation < 0 || origin.incarnation > incarnations.size()) {
            throw new IllegalArgumentException("incarnation " + origin.incarnation + " of a table of " + incarnations.size());
        }
        String id = origin.incarnation == 0 ? "" : incarnations.get(origin.incarnation - 1) + "." + Integer.toUnsignedString(raw.ring)
                + "." + Long.toUnsignedString(raw.number);
        List<Map.Entry<String, String>> data = new ArrayList<>();
        for (int at = 0; at < raw.values.size(); at++) {
            data.add(new SimpleImmutableEntry<>(text(raw.names.get(at)), raw.values.get(at)));
        }
        List<String> audiences = new ArrayList<>();
        for (int audience : origin.audiences) {
            audiences.add(text(audience));
        }
        int[] of = origin.texts;
        return new StoredRecord(id, raw.time, raw.received, Level.parse(Integer.toString(raw.level)),
                raw.level == 7 && raw.priority == null ? (Integer) 7 : raw.priority, raw.message, text(of[0]), text(of[1]), origin.line,
                text(of[2]), text(of[3]), text(of[4]), text(of[5]), text(of[6]), text(of[7]), audiences, text(of[8]), text(of[9]),
                text(of[10]), text(of[11]), raw.stackId, raw.stackLevel, raw.logId, data);
    }
}
