package org.tampu.internal.call;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The description of a statement, as {@code spec/log-call.md} has it. */
final class Site {
    private static final int VERSION = 1;
    private static final int RUST = 0;
    private static final int DISPLAY = 0;
    private static final int DEBUG = 1;

    private Site() {}

    /**
     * Encodes a site.
     *
     * @param where the place in the code, or null
     * @param floats the arguments whose value is a float, a bit for each: their text keeps its point, as Java's does
     * @param names names of the values beside the message
     */
    static byte[] encode(int level, StackTraceElement where, Template template, long floats, List<String> names) {
        Writer out = new Writer();
        out.u8(VERSION);
        out.u8(level);
        out.u8(RUST);
        out.u8(0);
        out.u32(where == null ? 0 : Math.max(0, where.getLineNumber()));
        out.text(where == null || where.getFileName() == null ? "" : where.getFileName());
        out.text("");
        out.text(where == null ? "" : where.getClassName() + "." + where.getMethodName());
        out.u16(template.arguments() + names.size());
        out.u32(template.pieces().size());
        for (Object piece : template.pieces()) {
            if (piece instanceof Integer index) {
                out.u8(1);
                out.u16(index);
                out.spec((floats >>> index & 1) == 0 ? DISPLAY : DEBUG);
            } else {
                out.u8(0);
                out.text((String) piece);
            }
        }
        out.u16(names.size());
        names.forEach(out::text);
        return out.bytes.toByteArray();
    }

    private static final class Writer {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        void u8(int value) {
            bytes.write(value);
        }

        void u16(int value) {
            bytes.write(value);
            bytes.write(value >>> 8);
        }

        void u32(int value) {
            bytes.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value).array());
        }

        void text(String text) {
            byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
            u32(encoded.length);
            bytes.writeBytes(encoded);
        }

        /** A spec without width, precision and flags. */
        void spec(int kind) {
            u32(' ');
            u8(0);
            u8(0);
            u8(0);
            u8(kind);
            u16(0);
            u16(0);
        }
    }
}
