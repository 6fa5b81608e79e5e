package org.tampu.bulk;

import java.util.HexFormat;

/**
 * The address of a receiver, with the token that admits senders: {@code host:port/token}.
 *
 * @param token 16 bytes
 */
public record BulkTarget(String host, int port, byte[] token) {
    /** Reads the text form. */
    public static BulkTarget parse(String text) {
        int slash = text.lastIndexOf('/');
        int colon = text.lastIndexOf(':', Math.max(slash, 0));
        if (slash < 0 || colon <= 0 || text.length() - slash != 33) {
            throw bad(text);
        }
        try {
            int port = Integer.parseInt(text.substring(colon + 1, slash));
            if (port < 0 || port > 65535) {
                throw bad(text);
            }
            return new BulkTarget(text.substring(0, colon), port, HexFormat.of().parseHex(text.substring(slash + 1)));
        } catch (IllegalArgumentException wrong) {
            throw bad(text);
        }
    }

    private static IllegalArgumentException bad(String text) {
        return new IllegalArgumentException("invalid target '" + text + "': write host:port/ and 32 hexadecimal digits");
    }

    /** Returns the address without the token. */
    public String address() {
        return host + ":" + port;
    }

    @Override
    public String toString() {
        return address() + "/" + HexFormat.of().formatHex(token);
    }
}
