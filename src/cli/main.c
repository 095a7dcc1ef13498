/* SPDX-License-Identifier: Apache-2.0
 * main.c: the program 1bit. */
#include <stdio.h>

#include "onebit.h"

int main(void) {
    printf("1bit %s\n", OB_VERSION);
    return 0;
}
