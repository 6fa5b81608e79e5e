package org.tampu.bulk;

/** A command that is not carried out, with the reason for its caller. */
final class BulkRefusal extends Exception {
    private static final long serialVersionUID = 1;

    BulkRefusal(String why) {
        super(why);
    }
}
