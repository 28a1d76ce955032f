// The names of the storage layer that Channels use, in their own namespace.
#pragma once

#include "core/storage/message_view.h"

namespace rq::queue {

using storage::Lookup;
using storage::MessageId;
using storage::MessageMeta;
using storage::MessageView;
using storage::Position;

}  // namespace rq::queue
