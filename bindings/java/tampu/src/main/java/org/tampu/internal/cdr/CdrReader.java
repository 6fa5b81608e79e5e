package org.tampu.internal.cdr;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Reads XCDR2, little endian, behind its encapsulation header. Lengths are compared with the bytes that are there
 * before anything is allocated.
 */
public final class CdrReader {
    private final ByteBuffer bytes;
    private final int origin;
    private int end;

    /** Begins at a buffer's position, which is the first byte of the header. */
    public CdrReader(ByteBuffer sample) {
        bytes = sample.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        origin = bytes.position();
        end = bytes.limit();
        if (u8() != 0 || (u8() & 0xfe) != 8 || u8() != 0) {
            throw new IllegalArgumentException("byte 0: not the header of XCDR2, little endian");
        }
        u8();
    }

    private void need(long more) {
        if (more < 0 || bytes.position() + more > end) {
            throw new IllegalArgumentException("byte " + (bytes.position() - origin) + ": " + more + " bytes are announced, "
                    + (end - bytes.position()) + " are left");
        }
    }

    private void align(int size) {
        int skip = -(bytes.position() - origin) & size - 1;
        need(skip);
        bytes.position(bytes.position() + skip);
    }

    /** Reads the length of a struct and makes its end that of the reader. */
    public void open() {
        int length = u32();
        need(Integer.toUnsignedLong(length));
        end = bytes.position() + length;
    }

    /** Reads the length of an inner struct and makes its end that of the reader; the result is for {@link #close}. */
    public int enter() {
        int outer = end;
        open();
        return outer;
    }

    /** Skips what is left of an inner struct, as members of a later release. */
    public void close(int outer) {
        bytes.position(end);
        end = outer;
    }

    /** Reads the length of a sequence or inner struct, which is only checked. */
    public void length() {
        need(Integer.toUnsignedLong(u32()));
    }

    /** Returns whether members of the struct are left. */
    public boolean hasMore(int least) {
        return end - bytes.position() >= least;
    }

    public int u8() {
        need(1);
        return bytes.get() & 0xff;
    }

    public int u16() {
        align(2);
        need(2);
        return bytes.getShort() & 0xffff;
    }

    public int u32() {
        align(4);
        need(4);
        return bytes.getInt();
    }

    public long u64() {
        align(4);
        need(8);
        return bytes.getLong();
    }

    /** Reads a count of elements that have at least so many bytes each. */
    public int count(int least) {
        long count = Integer.toUnsignedLong(u32());
        need(count * least);
        return (int) count;
    }

    /** Reads a string. */
    public String string() {
        int length = count(1);
        if (length == 0) {
            throw new IllegalArgumentException("byte " + (bytes.position() - origin) + ": a string without its zero");
        }
        byte[] text = raw(length);
        return new String(text, 0, length - 1, StandardCharsets.UTF_8);
    }

    /** Reads bytes as they are. */
    public byte[] raw(int length) {
        need(length);
        byte[] raw = new byte[length];
        bytes.get(raw);
        return raw;
    }

    /** Returns the buffer at the position of elements of this size, and skips them. */
    public ByteBuffer elements(int count, int size) {
        align(Math.min(size, 4));
        need((long) count * size);
        ByteBuffer slice = bytes.slice(bytes.position(), count * size).order(ByteOrder.LITTLE_ENDIAN);
        bytes.position(bytes.position() + count * size);
        return slice;
    }
}
