package org.tampu.bulk;

import java.util.Locale;

/** Protection that one end of a flow demands. The connection has the higher demand of both ends. */
public enum Protection {
    /** Nothing between two ends of one host, {@link #ENCRYPTED} between hosts. */
    AUTO,
    /** This end demands nothing. */
    NONE,
    /** Nobody on the network can change, repeat or add data. */
    AUTHENTICATED,
    /** The same, and nobody on the network can read data. */
    ENCRYPTED;

    /** Returns the protection with this name, as a receiver's declaration has it: null means auto, an unknown one encrypted. */
    public static Protection declared(String name) {
        if (name == null) {
            return AUTO;
        }
        try {
            return valueOf(name.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException unknown) {
            return ENCRYPTED;
        }
    }

    /** Returns the level that this demands: 0 none, 1 authenticated, 2 encrypted. */
    public int level(boolean oneHost) {
        return switch (this) {
            case AUTO -> oneHost ? 0 : 2;
            case NONE -> 0;
            case AUTHENTICATED -> 1;
            case ENCRYPTED -> 2;
        };
    }
}
