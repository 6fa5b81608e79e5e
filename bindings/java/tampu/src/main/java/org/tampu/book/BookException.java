package org.tampu.book;

import java.io.IOException;

/** A refusal of the logbook's server. */
public final class BookException extends IOException {
    private static final long serialVersionUID = 1;

    private final int status;

    BookException(int status, String message) {
        super(message);
        this.status = status;
    }

    /** Returns the status of HTTP: 401 unknown, 403 not allowed, 404 missing, 412 changed since it was read, ... */
    public int status() {
        return status;
    }
}
