package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/**
 * The header of a frame of bulk data ({@code spec/bulk.md}). The payload is a view of the buffer that it was read from.
 *
 * @param sum checksum of the payload; 0 where the frame has none
 */
public record BulkFrame(int kind, int flags, int session, int length, long transfer, long sequence, long offset, int sum) {
    public static final int START = 0;
    public static final int DATA = 1;
    public static final int STOP = 2;
    public static final int RESET = 3;
    public static final int HELLO = 16;
    public static final int WELCOME = 17;
    public static final int REFUSE = 18;
    public static final int ACK = 19;
    public static final int PING = 20;
    public static final int LOST = 21;
    public static final int FAULT = 22;
    public static final int NACK = 23;
    public static final int KEY_OFFER = 24;
    public static final int KEY_REPLY = 25;

    /** Flag: the payload has a checksum. */
    public static final int CHECKED = 1;
    /** Flag: a block of the sender ends here. */
    public static final int END_OF_BLOCK = 2;
    /** Flag: acknowledge at once. */
    public static final int ASK = 4;

    /** Bytes of the header. */
    public static final int HEADER = 48;
    /** Longest payload of any frame. */
    public static final int LONGEST = 16 << 20;
    /** Longest payload of a control frame, and of a parameter where the agreed length is shorter. */
    public static final int CONTROL = 16 << 10;

    private static final int MAGIC = 0x4b4c4254;

    /** Makes the header of a frame with this payload, with a checksum. */
    public static BulkFrame checked(int kind, int session, long transfer, long sequence, long offset, ByteBuffer payload) {
        return of(kind, 0, session, transfer, sequence, offset, payload, true);
    }

    /** Makes the header of a frame with this payload. */
    public static BulkFrame of(int kind, int flags, int session, long transfer, long sequence, long offset, ByteBuffer payload,
            boolean isChecked) {
        return new BulkFrame(kind, isChecked ? flags | CHECKED : flags, session, payload.remaining(), transfer, sequence, offset,
                isChecked ? crc(payload.duplicate()) : 0);
    }

    /** Writes the header. */
    public void encode(ByteBuffer into) {
        ByteBuffer bytes = into.slice(into.position(), HEADER).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(MAGIC).put((byte) kind).put((byte) flags).putShort((short) 0).putInt(session).putInt(length);
        bytes.putLong(transfer).putLong(sequence).putLong(offset).putInt(sum);
        bytes.putInt(crc(bytes.duplicate().flip()));
        into.position(into.position() + HEADER);
    }

    /**
     * Reads a header of 48 bytes.
     *
     * @throws IllegalArgumentException if the bytes are no header, or announce a payload that is too long
     */
    public static BulkFrame decode(ByteBuffer from) {
        ByteBuffer bytes = from.slice(from.position(), HEADER).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.getInt(0) != MAGIC || crc(bytes.duplicate().limit(HEADER - 4)) != bytes.getInt(HEADER - 4)) {
            throw new IllegalArgumentException("these bytes are no frame of bulk data");
        }
        BulkFrame frame = new BulkFrame(bytes.get(4) & 0xff, bytes.get(5) & 0xff, bytes.getInt(8), bytes.getInt(12), bytes.getLong(16),
                bytes.getLong(24), bytes.getLong(32), bytes.getInt(40));
        if (Integer.compareUnsigned(frame.length, LONGEST) > 0) {
            throw new IllegalArgumentException("a frame of " + Integer.toUnsignedString(frame.length) + " bytes; " + LONGEST
                    + " are allowed");
        }
        from.position(from.position() + HEADER);
        return frame;
    }

    /** Returns whether the frame has this flag. */
    public boolean has(int flag) {
        return (flags & flag) != 0;
    }

    /** Returns whether the payload is that of the frame, as far as a checksum says. */
    public boolean fits(ByteBuffer payload) {
        return !has(CHECKED) || crc(payload.duplicate()) == sum;
    }

    private static int crc(ByteBuffer bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return (int) crc.getValue();
    }
}
