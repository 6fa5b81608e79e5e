package org.tampu.internal.bulk;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The payloads of control frames ({@code spec/bulk.md}). Bytes behind the last field belong to a later release. */
public final class Messages {
    /** Longest text. */
    private static final int TEXT = 1024;
    /** Most ranges of a Nack. */
    private static final int RANGES = 256;

    private Messages() {}

    /** The first frame of a sender. */
    public record Hello(int version, int transport, int options, int frame, int session, long ackEvery, long transfer, byte[] token,
            byte[] incarnation, String domain, String source, String stream, String flow, String place, int port, byte[] groupKey) {
        /** Writes it; a group key only if there is one. */
        public ByteBuffer encode() {
            ByteBuffer bytes = empty();
            bytes.putShort((short) version).put((byte) transport).put((byte) options).putInt(frame).putInt(session);
            bytes.putLong(ackEvery).putLong(transfer).put(token).put(incarnation);
            for (String text : List.of(domain, source, stream, flow, place)) {
                putText(bytes, text);
            }
            if (port != 0 || groupKey != null) {
                bytes.putShort((short) port);
            }
            if (groupKey != null) {
                bytes.put(groupKey);
            }
            return bytes.flip();
        }

        /** Reads it. */
        public static Hello decode(ByteBuffer payload) {
            return read("Hello", payload, bytes -> new Hello(Short.toUnsignedInt(bytes.getShort()), bytes.get() & 0xff, bytes.get() & 0xff,
                    bytes.getInt(), bytes.getInt(), bytes.getLong(), bytes.getLong(), take(bytes, 16), take(bytes, 16), textOf(bytes),
                    textOf(bytes), textOf(bytes), textOf(bytes), textOf(bytes), bytes.remaining() < 2 ? 0 : Short.toUnsignedInt(bytes.getShort()),
                    bytes.remaining() < 32 ? null : take(bytes, 32)));
        }
    }

    /** The answer of a receiver that takes the sender. */
    public record Welcome(int version, int transport, int options, int frame, long sequence, long offset, byte[] incarnation,
            String source, String place, int room) {
        public ByteBuffer encode() {
            ByteBuffer bytes = empty();
            bytes.putShort((short) version).put((byte) transport).put((byte) options).putInt(frame).putLong(sequence).putLong(offset);
            bytes.put(incarnation);
            putText(bytes, source);
            putText(bytes, place);
            if (room != 0) {
                bytes.putInt(room);
            }
            return bytes.flip();
        }

        public static Welcome decode(ByteBuffer payload) {
            return read("Welcome", payload, bytes -> new Welcome(Short.toUnsignedInt(bytes.getShort()), bytes.get() & 0xff,
                    bytes.get() & 0xff, bytes.getInt(), bytes.getLong(), bytes.getLong(), take(bytes, 16), textOf(bytes), textOf(bytes),
                    bytes.remaining() < 4 ? 0 : bytes.getInt()));
        }
    }

    /** The answer of a receiver that does not. */
    public record Refuse(int reason, String text) {
        public ByteBuffer encode() {
            ByteBuffer bytes = empty().put((byte) reason);
            putText(bytes, text);
            return bytes.flip();
        }

        public static Refuse decode(ByteBuffer payload) {
            return read("Refuse", payload, bytes -> new Refuse(bytes.get() & 0xff, textOf(bytes)));
        }
    }

    /** Data that is lost. */
    public record Lost(long nextSequence, long nextOffset, int cause) {
        public ByteBuffer encode() {
            return empty().putLong(nextSequence).putLong(nextOffset).put((byte) cause).flip();
        }

        public static Lost decode(ByteBuffer payload) {
            return read("Lost", payload, bytes -> new Lost(bytes.getLong(), bytes.getLong(), bytes.get() & 0xff));
        }
    }

    /** A fault at the receiver. */
    public record Fault(int kind, int count, String text) {
        public ByteBuffer encode() {
            ByteBuffer bytes = empty().put((byte) kind).putInt(count);
            putText(bytes, text);
            return bytes.flip();
        }

        public static Fault decode(ByteBuffer payload) {
            return read("Fault", payload, bytes -> new Fault(bytes.get() & 0xff, bytes.getInt(), textOf(bytes)));
        }
    }

    /** The times that a sender waits for a receiver, in ms; the payload of a Ping. */
    public record Patience(int dataWait, int ackWait) {
        public ByteBuffer encode() {
            return empty().putInt(dataWait).putInt(ackWait).flip();
        }

        public static Patience decode(ByteBuffer payload) {
            return read("Ping", payload, bytes -> new Patience(bytes.getInt(), bytes.getInt()));
        }
    }

    /** Frames that a receiver of datagrams misses: pairs of the first sequence and the one after the last. */
    public record Nack(List<long[]> ranges) {
        public ByteBuffer encode() {
            ByteBuffer bytes = empty().putShort((short) ranges.size());
            ranges.forEach(range -> bytes.putLong(range[0]).putLong(range[1]));
            return bytes.flip();
        }

        public static Nack decode(ByteBuffer payload) {
            return read("Nack", payload, bytes -> {
                int count = Short.toUnsignedInt(bytes.getShort());
                if (count > RANGES) {
                    throw new IllegalArgumentException(count + " ranges; " + RANGES + " are allowed");
                }
                List<long[]> ranges = new ArrayList<>(count);
                long last = -1;
                for (int each = 0; each < count; each++) {
                    long[] range = {bytes.getLong(), bytes.getLong()};
                    if (range[0] <= last || range[1] <= range[0]) {
                        throw new IllegalArgumentException("ranges that are out of order, empty or touch");
                    }
                    last = range[1];
                    ranges.add(range);
                }
                return new Nack(List.copyOf(ranges));
            });
        }
    }

    private interface Reader<T> {
        T read(ByteBuffer bytes);
    }

    private static <T> T read(String what, ByteBuffer payload, Reader<T> reader) {
        try {
            return reader.read(payload.duplicate().order(ByteOrder.LITTLE_ENDIAN));
        } catch (BufferUnderflowException shorter) {
            throw new IllegalArgumentException("a " + what + " that ends too early", shorter);
        } catch (IllegalArgumentException bad) {
            throw new IllegalArgumentException("a " + what + " with " + bad.getMessage(), bad);
        }
    }

    private static ByteBuffer empty() {
        return ByteBuffer.allocate(BulkFrame.CONTROL).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static byte[] take(ByteBuffer bytes, int length) {
        byte[] taken = new byte[length];
        bytes.get(taken);
        return taken;
    }

    private static String textOf(ByteBuffer bytes) {
        int length = Short.toUnsignedInt(bytes.getShort());
        if (length > TEXT) {
            throw new IllegalArgumentException("a text of " + length + " bytes; " + TEXT + " are allowed");
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(take(bytes, length))).toString();
        } catch (CharacterCodingException bad) {
            throw new IllegalArgumentException("a text that is not UTF-8", bad);
        }
    }

    /** Writes a text; a longer one is cut at a character. */
    private static void putText(ByteBuffer bytes, String text) {
        byte[] all = text.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(all.length, TEXT);
        while (length < all.length && (all[length] & 0xc0) == 0x80) {
            length--;
        }
        bytes.putShort((short) length).put(all, 0, length);
    }
}
