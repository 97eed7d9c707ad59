/* SPDX-License-Identifier: Apache-2.0
 *
 * A consumer in C that knows nothing but the structs of Arrow. */
#include <lamina/arrow_abi.h>

long long SumOfFirstColumn(struct ArrowArrayStream* stream) {
  struct ArrowArray array;
  long long sum = 0;
  while (stream->get_next(stream, &array) == 0 && array.release != 0) {
    const struct ArrowArray* column = array.children[0];
    const int64_t* values = (const int64_t*)column->buffers[1];
    for (int64_t i = 0; i < column->length; ++i) sum += values[i];
    array.release(&array);
  }
  stream->release(stream);
  return sum;
}
