package org.tampu.bulk;

/**
 * Lost bytes of a transfer.
 *
 * @param from the first lost byte
 * @param to the byte behind the last one; -1 if nobody knows
 * @param frames the number of lost frames, if known
 * @param cause number of the cause in {@code spec/bulk.md}
 */
public record LostRange(long from, long to, long frames, int cause) {
    /** Returns the number of bytes, as far as known. */
    public long bytes() {
        return to < 0 ? 0 : to - from;
    }
}
