package org.tampu.event;

import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.tampu.internal.cdr.CdrReader;
import org.tampu.internal.cdr.CdrWriter;

/** The bytes of an event ({@code spec/wire/event.md}). */
final class EventCodec {
    private static final int ERRORS_MAX = 100;

    private EventCodec() {}

    static byte[] encode(Event event) {
        CdrWriter out = new CdrWriter();
        int begin = out.begin();
        out.u32(event.attribute());
        out.u32(event.epoch());
        out.u64(event.time());
        out.u64(event.number());
        out.u32(event.kinds());
        Value value = event.value();
        out.u8(event.quality().ordinal());
        out.u8(value == null ? 0 : value.format());
        out.u8(event.flags());
        out.u8(0);
        out.u32(value == null ? 0 : value.x());
        out.u32(value == null ? 0 : value.y());
        put(out, value);
        out.u8(event.setPoint() == null ? 0 : 1);
        if (event.setPoint() != null) {
            out.align(4);
            put(out, event.setPoint());
        }
        out.u8(event.errors().isEmpty() ? 0 : 1);
        if (!event.errors().isEmpty()) {
            int errors = out.begin();
            out.u32(event.errors().size());
            for (Failure failure : event.errors()) {
                out.string(failure.reason());
                out.string(failure.description());
                out.string(failure.origin());
                out.u8(failure.severity());
            }
            out.end(errors);
        }
        out.u8(event.token() == null ? 0 : 1);
        if (event.token() != null) {
            out.u64(event.token());
        }
        out.u8(event.name().isEmpty() ? 0 : 1);
        if (!event.name().isEmpty()) {
            out.string(event.name());
        }
        out.align(4);
        if (event.leftOut() != 0 || event.age() != 0) {
            out.u64(event.leftOut());
        }
        if (event.age() != 0) {
            out.u64(event.age());
        }
        out.end(begin);
        return out.toBytes();
    }

    private static void put(CdrWriter out, Value value) {
        out.u32(value == null ? 0 : value.type().number());
        if (value == null) {
            return;
        } else if (value.elements() instanceof Encoded encoded) {
            out.string(encoded.format());
            out.u32(encoded.data().length);
            out.raw(encoded.data());
        } else if (value.elements() instanceof String[] texts) {
            int begin = out.begin();
            out.u32(texts.length);
            for (String text : texts) {
                out.string(text);
            }
            out.end(begin);
        } else {
            byte[] raw = raw(value.elements());
            out.u32(raw.length / value.type().width());
            out.raw(raw);
        }
    }

    private static byte[] raw(Object elements) {
        if (elements instanceof byte[] all) {
            return all;
        } else if (elements instanceof boolean[] all) {
            byte[] raw = new byte[all.length];
            for (int at = 0; at < all.length; at++) {
                raw[at] = (byte) (all[at] ? 1 : 0);
            }
            return raw;
        } else if (elements instanceof short[] all) {
            ByteBuffer raw = buffer(all.length, 2);
            raw.asShortBuffer().put(all);
            return raw.array();
        } else if (elements instanceof int[] all) {
            ByteBuffer raw = buffer(all.length, 4);
            raw.asIntBuffer().put(all);
            return raw.array();
        } else if (elements instanceof long[] all) {
            ByteBuffer raw = buffer(all.length, 8);
            raw.asLongBuffer().put(all);
            return raw.array();
        } else if (elements instanceof float[] all) {
            ByteBuffer raw = buffer(all.length, 4);
            raw.asFloatBuffer().put(all);
            return raw.array();
        }
        double[] all = (double[]) elements;
        ByteBuffer raw = buffer(all.length, 8);
        raw.asDoubleBuffer().put(all);
        return raw.array();
    }

    private static ByteBuffer buffer(int count, int width) {
        return ByteBuffer.allocate(count * width).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Decodes the event between the buffer's position and limit.
     *
     * @throws IllegalArgumentException with the byte of the error
     */
    static Event decode(ByteBuffer sample) {
        CdrReader in = new CdrReader(sample);
        in.open();
        int attribute = in.u32();
        int epoch = in.u32();
        long time = in.u64();
        long number = in.u64();
        int kinds = in.u32();
        Quality quality = Quality.of(in.u8());
        int format = in.u8();
        int flags = in.u8();
        in.u8();
        int x = in.u32();
        int y = in.u32();
        Value value = value(in, format, x, y);
        Value setPoint = in.u8() == 0 ? null : value(in, 1, -1, 0);
        List<Failure> errors = in.u8() == 0 ? List.of() : errors(in);
        Long token = in.u8() == 0 ? null : (Long) in.u64();
        String name = in.u8() == 0 ? "" : in.string();
        long leftOut = in.hasMore(8) ? in.u64() : 0;
        long age = in.hasMore(8) ? in.u64() : 0;
        return new Event(attribute, epoch, time, number, kinds, quality, flags, value, setPoint, errors, token, name, leftOut,
                age);
    }

    private static List<Failure> errors(CdrReader in) {
        in.length();
        int count = in.count(13);
        if (count > ERRORS_MAX) {
            throw new IllegalArgumentException(count + " errors; " + ERRORS_MAX + " are allowed");
        }
        List<Failure> errors = new ArrayList<>(count);
        for (int each = 0; each < count; each++) {
            errors.add(new Failure(in.string(), in.string(), in.string(), Math.min(in.u8(), 2)));
        }
        return List.copyOf(errors);
    }

    /** Reads a value; a negative {@code x} takes the number of elements that are there. */
    private static Value value(CdrReader in, int format, int x, int y) {
        // The number is aligned to 4 and followed by zeros.
        int number = in.u32() & 0xff;
        if (number == 0) {
            return null;
        }
        DataType type = DataType.of(number);
        Object elements = elements(in, type);
        if (type == DataType.ENCODED) {
            return new Value(type, 0, 1, 0, elements);
        }
        return new Value(type, format, x < 0 ? Array.getLength(elements) : x, y, elements);
    }

    private static Object elements(CdrReader in, DataType type) {
        if (type == DataType.ENCODED) {
            return new Encoded(in.string(), in.raw(in.count(1)));
        } else if (type == DataType.STRING) {
            in.length();
            String[] texts = new String[in.count(5)];
            for (int at = 0; at < texts.length; at++) {
                texts[at] = in.string();
            }
            return texts;
        }
        int count = in.count(type.width());
        ByteBuffer raw = in.elements(count, type.width());
        switch (type) {
            case BOOLEAN -> {
                boolean[] all = new boolean[count];
                for (int at = 0; at < count; at++) {
                    all[at] = raw.get(at) != 0;
                }
                return all;
            }
            case UCHAR, STATE -> {
                byte[] all = new byte[count];
                raw.get(all);
                return all;
            }
            case SHORT, USHORT, ENUM -> {
                short[] all = new short[count];
                raw.asShortBuffer().get(all);
                return all;
            }
            case LONG, ULONG -> {
                int[] all = new int[count];
                raw.asIntBuffer().get(all);
                return all;
            }
            case LONG64, ULONG64 -> {
                long[] all = new long[count];
                raw.asLongBuffer().get(all);
                return all;
            }
            case FLOAT -> {
                float[] all = new float[count];
                raw.asFloatBuffer().get(all);
                return all;
            }
            default -> {
                double[] all = new double[count];
                raw.asDoubleBuffer().get(all);
                return all;
            }
        }
    }
}
