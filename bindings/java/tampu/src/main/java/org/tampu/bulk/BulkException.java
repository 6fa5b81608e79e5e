package org.tampu.bulk;

import java.io.IOException;

/** A failure of a sender. */
public final class BulkException extends IOException {
    private static final long serialVersionUID = 1;

    /** The kinds of failures. */
    public enum Kind {
        /** A transfer needs more receivers than are connected; the message has the refusals. */
        NO_RECEIVER,
        /** All receivers of the transfer are gone or were cut. */
        NOBODY_LEFT,
        /** The call is not possible now: data before a start, a second start. */
        WRONG_ORDER,
        /** The parameter is longer than the agreed frames. */
        PARAMETER_TOO_LONG,
        /** A receiver lacks a part of the transfer. */
        INCOMPLETE,
        /** The calling thread was interrupted. A transfer that was interrupted in a block should be reset. */
        INTERRUPTED,
        /** A command from outside stopped the transfer, or the work to which it belongs. */
        CANCELLED,
        /** The sender was closed. */
        CLOSED
    }

    private final Kind kind;

    /** Makes a failure of this kind. */
    public BulkException(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** Returns the kind. */
    public Kind kind() {
        return kind;
    }
}
