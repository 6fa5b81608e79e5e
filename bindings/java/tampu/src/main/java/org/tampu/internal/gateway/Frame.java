package org.tampu.internal.gateway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.tampu.internal.json.Json;

/** A frame of the gateway's protocol ({@code spec/wire/gateway.md}). */
public record Frame(int kind, int flags, int id, long number, byte[] body) {
    public static final int HELLO = 1;
    public static final int WELCOME = 2;
    public static final int ACK = 3;
    public static final int BYE = 4;
    public static final int OPEN = 16;
    public static final int CREDIT = 17;
    public static final int CLOSE = 18;
    public static final int DECLARE = 19;
    public static final int PUBLISH = 20;
    public static final int ASK = 21;
    public static final int SERVE = 22;
    public static final int ANSWER = 23;
    public static final int OPENED = 32;
    public static final int STREAM = 33;
    public static final int DATA = 34;
    public static final int GAP = 35;
    public static final int LIFE = 36;
    public static final int ATTRIBUTE = 37;
    public static final int EVENTS = 38;
    public static final int NOTICE = 39;
    public static final int RECEIPT = 40;
    public static final int PART = 41;
    public static final int ENDED = 42;
    public static final int QUESTION = 43;
    public static final int CANCEL = 44;

    /** Bytes before the body. */
    public static final int HEADER = 24;
    /** Longest body that we take. */
    public static final int LONGEST = 16 << 20;

    /** Makes a frame with a JSON body. */
    public static Frame of(int kind, int id, Map<String, ?> body) {
        return new Frame(kind, 0, id, 0, Json.write(body).getBytes(StandardCharsets.UTF_8));
    }

    /** Makes a frame with a body of one u64. */
    public static Frame of(int kind, int id, long value) {
        return new Frame(kind, 0, id, 0, ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array());
    }

    /** Returns the same frame as a counted one. */
    Frame counted(long as) {
        return new Frame(kind, flags, id, as, body);
    }

    /** Returns whether frames of this kind are counted. */
    public boolean isCounted() {
        return kind >= OPEN;
    }

    /** Returns the frame's bytes. */
    public byte[] encode() {
        return ByteBuffer.allocate(HEADER + body.length).order(ByteOrder.LITTLE_ENDIAN)
                .putInt(body.length).put((byte) kind).put((byte) flags).putShort((short) 0).putInt(id).putInt(0).putLong(number)
                .put(body).array();
    }

    /**
     * Takes a frame from the bytes between position and limit.
     *
     * @return the frame, or null if it is not complete yet
     * @throws IllegalArgumentException for a body that is too long
     */
    public static Frame decode(ByteBuffer bytes) {
        bytes.order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.remaining() < HEADER) {
            return null;
        }
        int begin = bytes.position();
        long length = Integer.toUnsignedLong(bytes.getInt(begin));
        if (length > LONGEST) {
            throw new IllegalArgumentException("a frame of " + length + " bytes; " + LONGEST + " are allowed");
        }
        if (bytes.remaining() < HEADER + length) {
            return null;
        }
        byte[] body = new byte[(int) length];
        bytes.get(begin + HEADER, body);
        bytes.position(begin + HEADER + body.length);
        return new Frame(bytes.get(begin + 4) & 0xff, bytes.get(begin + 5) & 0xff, bytes.getInt(begin + 8), bytes.getLong(begin + 16),
                body);
    }

    /** Returns the body as a JSON object. */
    public Map<String, Object> json() {
        return Json.object(new String(body, StandardCharsets.UTF_8));
    }

    /** Returns the body's u64. */
    public long value() {
        if (body.length != 8) {
            throw new IllegalArgumentException("a body of " + body.length + " bytes where a number stands");
        }
        return ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN).getLong();
    }
}
