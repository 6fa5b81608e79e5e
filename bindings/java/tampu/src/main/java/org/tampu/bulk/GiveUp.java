package org.tampu.bulk;

/** Thrown by a handler that wants no more of a transfer, for instance because a disk is full. The sender gets the text. */
public final class GiveUp extends Exception {
    private static final long serialVersionUID = 1;

    /** Makes the refusal. */
    public GiveUp(String why) {
        super(why);
    }
}
