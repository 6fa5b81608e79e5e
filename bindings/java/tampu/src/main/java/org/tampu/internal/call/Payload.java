package org.tampu.internal.call;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.tampu.internal.ring.RingPool;

/** The raw arguments of a call, as {@code spec/log-call.md} lays them out, behind the room for a record's header. */
final class Payload {
    /** Arguments that a statement may have. */
    static final int ARGUMENTS_MAX = 64;

    private static final int BOOL = 1;
    private static final int CHAR = 2;
    private static final int I8 = 8;
    private static final int I16 = 9;
    private static final int I32 = 10;
    private static final int I64 = 11;
    private static final int F32 = 13;
    private static final int F64 = 14;
    private static final int STR = 15;
    /** Bytes of a text that are stored. */
    private static final int TEXT_MAX = 65_536;
    /** An array longer than this is not kept for the next call. */
    private static final int KEPT = 256 << 10;

    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

    byte[] bytes = new byte[1024];
    private int tag;
    private int at;

    /** Begins the payload of so many arguments. */
    void begin(int arguments) {
        if (bytes.length > KEPT) {
            bytes = new byte[1024];
        }
        tag = RingPool.HEADER;
        at = tag + (arguments + 7 & ~7);
        for (int word = tag; word < at; word += 8) {
            LONG.set(bytes, word, 0L);
        }
    }

    /** Returns the bytes of payload. */
    int length() {
        return at - RingPool.HEADER;
    }

    /** Makes room for so many bytes, and for a record's padding behind them. */
    private void ensure(int more) {
        if (at + more + 8 > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, at + more + 8));
        }
    }

    /** Adds an argument. Numbers are stored raw, all else as its text. */
    void put(Object value) {
        if (value instanceof String text) {
            text(text);
        } else if (value instanceof Integer number) {
            ensure(4);
            bytes[tag++] = I32;
            INT.set(bytes, at, (int) number);
            at += 4;
        } else if (value instanceof Long number) {
            ensure(8);
            bytes[tag++] = I64;
            LONG.set(bytes, at, (long) number);
            at += 8;
        } else if (value instanceof Double number) {
            ensure(8);
            bytes[tag++] = F64;
            LONG.set(bytes, at, Double.doubleToRawLongBits(number));
            at += 8;
        } else {
            putRare(value);
        }
    }

    private void putRare(Object value) {
        ensure(8);
        if (value instanceof Float number) {
            bytes[tag++] = F32;
            INT.set(bytes, at, Float.floatToRawIntBits(number));
            at += 4;
        } else if (value instanceof Boolean truth) {
            bytes[tag++] = BOOL;
            bytes[at++] = (byte) (truth ? 1 : 0);
        } else if (value instanceof Character character && !Character.isSurrogate(character)) {
            bytes[tag++] = CHAR;
            INT.set(bytes, at, (int) (char) character);
            at += 4;
        } else if (value instanceof Short number) {
            bytes[tag++] = I16;
            SHORT.set(bytes, at, (short) number);
            at += 2;
        } else if (value instanceof Byte number) {
            bytes[tag++] = I8;
            bytes[at++] = number;
        } else {
            text(Texts.of(value));
        }
    }

    /** Adds a text. */
    void text(String text) {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        int stored = Math.min(encoded.length, TEXT_MAX);
        ensure(4 + stored);
        bytes[tag++] = STR;
        INT.set(bytes, at, encoded.length);
        System.arraycopy(encoded, 0, bytes, at + 4, stored);
        at += 4 + stored;
    }

    /** Makes the payload of a whole record. */
    void whole(byte[] record) {
        at = RingPool.HEADER;
        ensure(record.length);
        System.arraycopy(record, 0, bytes, at, record.length);
        at += record.length;
    }
}
