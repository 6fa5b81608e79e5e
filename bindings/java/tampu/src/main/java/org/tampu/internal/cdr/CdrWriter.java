package org.tampu.internal.cdr;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes XCDR2, little endian, behind its encapsulation header ({@code spec/wire/log-batch.md}, {@code spec/wire/event.md}). */
public final class CdrWriter {
    private ByteBuffer bytes = ByteBuffer.allocate(512).order(ByteOrder.LITTLE_ENDIAN);

    /** Begins with the header of D_CDR2_LE. */
    public CdrWriter() {
        bytes.put((byte) 0).put((byte) 9).put((byte) 0).put((byte) 0);
    }

    private void ensure(int more) {
        if (bytes.remaining() < more) {
            int length = Math.max(2 * bytes.capacity(), bytes.position() + more);
            bytes = ByteBuffer.wrap(Arrays.copyOf(bytes.array(), length)).order(ByteOrder.LITTLE_ENDIAN).position(bytes.position());
        }
    }

    /** Pads to a multiple of {@code size}, at most 4. */
    public void align(int size) {
        ensure(4);
        while ((bytes.position() & size - 1) != 0) {
            bytes.put((byte) 0);
        }
    }

    public void u8(int value) {
        ensure(1);
        bytes.put((byte) value);
    }

    public void u16(int value) {
        align(2);
        ensure(2);
        bytes.putShort((short) value);
    }

    public void u32(int value) {
        align(4);
        ensure(4);
        bytes.putInt(value);
    }

    public void u64(long value) {
        align(4);
        ensure(8);
        bytes.putLong(value);
    }

    /** Writes a string: its length with the closing zero, UTF-8, the zero. */
    public void string(String text) {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        u32(encoded.length + 1);
        raw(encoded);
        u8(0);
    }

    /** Writes bytes as they are. */
    public void raw(byte[] raw) {
        ensure(raw.length);
        bytes.put(raw);
    }

    /** Begins a struct or sequence with a length before it; the result is for {@link #end}. */
    public int begin() {
        u32(0);
        return bytes.position();
    }

    /** Stores the length of what follows {@code begin}. */
    public void end(int begin) {
        bytes.putInt(begin - 4, bytes.position() - begin);
    }

    /** Returns all that was written. */
    public byte[] toBytes() {
        return Arrays.copyOf(bytes.array(), bytes.position());
    }
}
