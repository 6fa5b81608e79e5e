package org.tampu.internal.ring;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * The file {@code dictionary}: the meaning of the numbers in records. It only grows.
 *
 * <p>An entry is in the file before its number is returned, so no record refers to a missing entry. The file is written
 * through {@link RandomAccessFile} because a channel would be closed if a thread with a pending interrupt logged.
 */
final class Dictionary {
    static final int SITE = 1;
    static final int VOICE = 2;
    static final int MADE = 3;

    private static final int ENTRY_HEADER = 16;
    private static final int LONGEST_ENTRY = 1 << 20;
    private static final long LONGEST = 256L << 20;

    private final RandomAccessFile file;
    private long end;
    private int next = 1;

    Dictionary(RandomAccessFile file, Incarnation incarnation) throws IOException {
        this.file = file;
        ByteBuffer header = ByteBuffer.allocate(32).order(ByteOrder.nativeOrder());
        header.put("TAMPULDC".getBytes(StandardCharsets.US_ASCII)).putInt(0x01020304).putShort((short) 1).putShort((short) 0);
        header.put(incarnation.toBytes());
        file.write(header.array());
        end = header.capacity();
    }

    /** Writes an entry and returns its number; 0 if there is no room for it. */
    synchronized int define(int kind, byte[] bytes) {
        int length = ENTRY_HEADER + (bytes.length + 7 & ~7);
        if (bytes.length > LONGEST_ENTRY || end + length > LONGEST) {
            return 0;
        }
        ByteBuffer entry = ByteBuffer.allocate(length).order(ByteOrder.nativeOrder());
        entry.putInt(0).putInt(next).putInt(kind).putInt(bytes.length).put(bytes);
        CRC32C checksum = new CRC32C();
        checksum.update(entry.array(), 4, ENTRY_HEADER - 4 + bytes.length);
        entry.putInt(0, (int) checksum.getValue());
        try {
            file.seek(end);
            file.write(entry.array());
        } catch (IOException full) {
            // The next entry overwrites what was written of this one.
            return 0;
        }
        end += length;
        return next++;
    }
}
